import pino from 'pino'
import type { Test } from 'tap'
import { RegistryReader } from '../registry/client/index.js'
import { clock, log } from './kit.js'
import { policyOf } from './policy-of.js'

interface ReaderOptions {
  /** GIT_PRIVATE_HOSTS; 127.0.0.1 unless given. */
  readonly hosts?: string
  /** Where names lead; 127.0.0.1 unless given. */
  readonly addresses?: Readonly<Record<string, string | readonly string[]>>
  readonly auth?: { readonly username: string; readonly password: string }
  readonly isBase?: true
  readonly pace?: { readonly seconds: number; readonly bytesPerSecond: number }
  readonly signal?: AbortSignal
  /** Takes what is logged instead. */
  readonly logged?: string[]
}

/** A reader of the registry client; what it has opened ends with the test. */
export function readerOf(t: Test, image: string, options: ReaderOptions = {}): RegistryReader {
  const { hosts = '127.0.0.1', addresses = {}, auth, isBase, pace, signal, logged } = options
  const ended = new AbortController()
  t.teardown(() => {
    ended.abort()
  })
  const writes = logged === undefined ? undefined : { write: (line: string) => void logged.push(line) }
  return new RegistryReader(image, {
    // What breaks off is asked for again at once.
    clock: { every: clock.every, sleep: async () => {} },
    log: writes === undefined ? log : pino({ level: 'info' }, writes),
    rules: {
      hostPolicy: policyOf(hosts),
      lookup: async host => {
        if (host.endsWith('.invalid')) throw Object.assign(new Error('none'), { code: 'ENOTFOUND' })
        return [addresses[host] ?? '127.0.0.1'].flat().map(address => ({ address, family: 4 }))
      }
    },
    signal: signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]),
    ...(auth !== undefined && { auth }),
    ...(isBase !== undefined && { isBase }),
    ...(pace !== undefined && { pace })
  })
}

/** What it rejects with. */
export const failureOf = async (work: Promise<unknown>): Promise<Error & { readonly code?: string }> =>
  await work.then(
    () => new Error('it did not fail'),
    (error: Error) => error
  )
