import { isIPv6 } from 'node:net'
import type { Clock, Problem } from 'busbar/sdk'
import type { LockOutStore } from './lock-out-store.js'
import { lockOutPolicy } from '../policy.js'
import { lockedOut } from '../problems.js'

/** What a proof comes to: `undefined` is a failure, anything else a success. */
export interface Proof<T> {
  /** The e-mail address the attempt is about, known or not. */
  readonly account: string
  readonly ip: string
  readonly prove: () => Promise<T | undefined>
  /** What a failure is answered with, until the account is locked. */
  readonly failure: () => Problem
  /** True: a success shows only half of what is asked, so it forgives this attempt and no earlier one. */
  readonly partial?: (value: T) => boolean
}

/**
 * Slows down guessing: after five failures for one account from one address, both are refused together
 * for fifteen minutes. Nobody can lock a user out from elsewhere.
 */
export interface LockOut {
  attempt<T>(proof: Proof<T>): Promise<T>
  /** Forgets the failures for an account from an address: it was proved in another way. */
  forgive(account: string, ip: string): Promise<void>
}

export function createLockOut (store: LockOutStore, clock: Clock): LockOut {
  return Object.freeze({
    async attempt<T> ({ account, ip, prove, failure, partial }: Proof<T>): Promise<T> {
      const address = addressKey(ip)
      const now = clock.now()
      const windowEnd = new Date(now.getTime() + lockOutPolicy.windowMs)
      // Counted before it is tried: a hundred attempts at once get five tries, not a hundred.
      const counted = await store.add(account, address, now, windowEnd, lockOutPolicy.attempts)
      const locked = (): Problem => lockedOut(secondsBetween(clock.now(), counted.ends_at))
      if (counted.attempts > lockOutPolicy.attempts) throw locked()

      let value: T | undefined
      try {
        value = await prove()
      } catch (error) {
        await store.remove(account, address)
        throw error
      }
      if (value === undefined) throw counted.attempts === lockOutPolicy.attempts ? locked() : failure()
      if (partial?.(value) === true) await store.remove(account, address)
      else await store.clear(account, address)
      return value
    },
    forgive: async (account: string, ip: string) => { await store.clear(account, addressKey(ip)) }
  })
}

const secondsBetween = (from: Date, to: Date): number => Math.max(1, Math.ceil((to.getTime() - from.getTime()) / 1000))

/** The network part of an IPv6 address: whoever has one such address has 2^64 of them. */
export function addressKey (ip: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(ip)) return ip
  const [head = '', tail] = (ip.split('%')[0] ?? '').toLowerCase().split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array<string>(8 - first.length - last.length).fill('0')
  return [...first, ...zeros, ...last].slice(0, 4).map(group => group.replace(/^0+(?=.)/, '')).join(':') + '::/64'
}
