import { isIPv6 } from 'node:net'
import { type Clock, networkOf, type Problem, plainAddress, type Tx } from 'busbar/sdk'
import { lockOutPolicy, unknownDevicesPolicy } from '../policy.js'
import { lockedOut } from '../problems.js'
import type { LockOutStore } from './lock-out-store.js'

/** Failures that are counted together: so many within the window lock what is counted for the window. */
interface Counter {
  /** What was tried, and for which e-mail address, known or not. */
  readonly account: string
  readonly place: string
  readonly attempts: number
  readonly windowMs: number
}

/** Where an attempt comes from: a device that has signed in to this account before, or else an address. */
export interface Origin {
  readonly ip: string
  readonly device: string | undefined
}

const placeOf = ({ ip, device }: Origin): string =>
  device === undefined ? addressKey(ip) : `device:${device}`

/**
 * Who guesses passwords is told from the account's owner by where they are. A device that has signed in before is
 * counted by itself: who shares its address, and fails there on purpose, does not lock its owner out.
 */
export const passwordCounter = (account: string, origin: Origin): Counter => ({
  account,
  place: placeOf(origin),
  ...lockOutPolicy
})

/**
 * Codes are asked for after a right password, so a wrong password never counts here. Who has the password may have
 * thousands of addresses too: what fails on unknown devices is counted together, wherever they are.
 */
export const codeCounters = (account: string, origin: Origin): readonly Counter[] => [
  { account: `code:${account}`, place: placeOf(origin), ...lockOutPolicy },
  ...(origin.device === undefined
    ? [{ account: `code:${account}`, place: 'unknown devices', ...unknownDevicesPolicy }]
    : [])
]

/** Who proves again who they are, in a session; the failures of others do not count against it. */
export const sessionCounter = (account: string, sessionId: string): Counter => ({
  account: `session:${account}`,
  place: sessionId,
  ...lockOutPolicy
})

/** What a proof comes to: `undefined` is a failure, anything else a success. */
interface Proof<T> {
  readonly counters: readonly Counter[]
  /** A failure counts here too; what is locked here does not stop the attempt. */
  readonly alsoCounts?: readonly Counter[]
  readonly prove: () => Promise<T | undefined>
  /** What a failure is answered with, until the counters lock. */
  readonly failure: () => Problem
  /** True: a success shows only half of what is asked, so it forgives this attempt and no earlier one. */
  readonly partial?: (value: T) => boolean
}

/** Slows down guessing: after so many failures, attempts with the same counter are refused for its window. */
export class LockOut {
  constructor(
    private readonly store: LockOutStore,
    private readonly clock: Clock
  ) {}

  async attempt<T>({ counters, alsoCounts = [], prove, failure, partial }: Proof<T>): Promise<T> {
    const now = this.clock.now()
    let last: Date | undefined
    // Counted before it is tried: a hundred attempts at once get five tries, not a hundred.
    for (const counter of counters) {
      const { attempts } = counter
      const counted = await this.#add(counter, now)
      if (counted.attempts > attempts) throw this.#locked(counted.ends_at)
      if (counted.attempts === attempts) last = counted.ends_at
    }

    let value: T | undefined
    try {
      value = await prove()
    } catch (error) {
      await this.#takeBack(counters)
      throw error
    }
    if (value === undefined) {
      for (const counter of alsoCounts) await this.#add(counter, now)
      throw last === undefined ? failure() : this.#locked(last)
    }
    if (partial?.(value) === true) await this.#takeBack(counters)
    else for (const { account, place } of counters) await this.store.clear(account, place)
    return value
  }

  /** 429 while one of them is locked; counts nothing. */
  async check(counters: readonly Counter[], tx: Tx): Promise<void> {
    for (const { account, place, attempts } of counters) {
      const found = await this.store.find(account, place, this.clock.now(), tx)
      if (found !== undefined && found.attempts >= attempts) throw this.#locked(found.ends_at)
    }
  }

  /** Forgets the failures of an account but those of sessions: it was proved in another way. */
  async clearFailures(account: string): Promise<void> {
    for (const counted of [account, `code:${account}`]) await this.store.clearAll(counted)
  }

  async #add({ account, place, attempts, windowMs }: Counter, now: Date) {
    return await this.store.add(account, place, now, new Date(now.getTime() + windowMs), attempts)
  }

  async #takeBack(counters: readonly Counter[]): Promise<void> {
    for (const { account, place } of counters) await this.store.remove(account, place)
  }

  #locked(endsAt: Date): Problem {
    return lockedOut(secondsBetween(this.clock.now(), endsAt))
  }
}

const secondsBetween = (from: Date, to: Date): number =>
  Math.max(1, Math.ceil((to.getTime() - from.getTime()) / 1000))

/** An IPv6 address counts by its /64: who has one such address has 2^64 of them. */
export function addressKey(ip: string): string {
  const plain = plainAddress(ip)
  return isIPv6(plain) ? `${networkOf(plain)}::/64` : plain
}
