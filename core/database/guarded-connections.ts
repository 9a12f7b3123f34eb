import type { PoolClient } from 'pg'
import type { LockWait } from './lock-waits.js'

/** Why a connection is to be ended. */
export type EndCause =
  | { readonly kind: 'waits'; readonly wait: LockWait }
  /** The catalogs are locked so that nobody can be asked who it is. */
  | { readonly kind: 'blind' }
  | { readonly kind: 'locks'; readonly locks: number }
  /** It has a lock by name that only the platform takes. */
  | { readonly kind: 'taken'; readonly lock: string }

/** In a sentence of which the connection is the subject. */
export const takenText = (lock: string): string =>
  `it had the lock "${lock}", which is the platform's: take advisory locks by keys of your own`

/** Code of a third-party plugin runs on it, on however many connections, and how long others may wait for it. */
export interface Guarded {
  readonly plugin: string
  readonly limitMs: number
  /** Whose waiting counts. */
  readonly minds: (wait: LockWait, isPlatforms: boolean) => boolean
  /** Since when it is in a transaction or a statement, by the process's clock. */
  readonly busySince: (client: PoolClient) => number | undefined
  /** Again after as long again, when the first time did not help. */
  readonly end: (client: PoolClient, cause: EndCause, times: number) => void
}

interface Entry {
  readonly client: PoolClient
  readonly guarded: Guarded
}

export const processIdOf = (client: PoolClient): number | undefined =>
  (client as unknown as { readonly processID?: number | null }).processID ?? undefined

/** The connections of this process on which code of third-party plugins runs, by the server's id. */
export class GuardedConnections {
  readonly #entries = new Map<number, Entry>()

  get pids(): readonly number[] {
    return [...this.#entries.keys()]
  }

  get all(): Iterable<Entry> {
    return this.#entries.values()
  }

  /** Until the returned function is called. */
  add(client: PoolClient, guarded: Guarded): () => void {
    const pid = processIdOf(client)
    if (pid === undefined) return () => {}
    const entry = { client, guarded }
    this.#entries.set(pid, entry)
    return () => {
      if (this.#entries.get(pid) === entry) this.#entries.delete(pid)
    }
  }

  of(pid: number): Entry | undefined {
    return this.#entries.get(pid)
  }

  readonly pluginOf = (pid: number): string | undefined => this.#entries.get(pid)?.guarded.plugin
}
