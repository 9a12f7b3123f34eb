import type { Log } from 'busbar/sdk'
import type { Pool, PoolClient } from 'pg'
import { heldSince } from './connection-share.js'
import { type EndCause, type Guarded, processIdOf, takenText } from './guarded-connections.js'
import type { LockWatch } from './lock-watch.js'
import { cutByWire } from './wire-cancel.js'

interface GuardParts {
  readonly locks: LockWatch
  readonly log: Log
  /** How long the platform may wait. */
  readonly limitMs: number
  readonly onEnded?: ((plugin: string, reason: string) => void) | undefined
}

/** Ends connections of third-party plugins on which a transaction or a statement keeps the platform from its work, and says so. */
export class PluginGuards {
  /** By plugin: all its connections count as one. */
  readonly #guarded = new Map<string, Guarded>()
  readonly #told = new WeakSet<PoolClient>()
  readonly #busy = new WeakMap<PoolClient, ReadonlySet<PoolClient>>()

  constructor(private readonly parts: GuardParts) {}

  /** `busy`: of the pool's connections, those that are in use. */
  guard(pool: Pool, plugin: string, busy: ReadonlySet<PoolClient>): void {
    const stops = new WeakMap<PoolClient, () => void>()
    const guarded = this.#guarded.get(plugin) ?? this.#make(plugin)
    this.#guarded.set(plugin, guarded)
    pool.on('connect', client => {
      this.#busy.set(client, busy)
      stops.set(client, this.parts.locks.guard(client, guarded))
    })
    pool.on('remove', client => stops.get(client)?.())
  }

  /** Not on a connection of the pool, as what is to be ended may be what keeps all of them waiting. */
  async terminate(pid: number, plugin: string, began?: string | null): Promise<boolean> {
    try {
      return await this.parts.locks.signal(pid, 'terminate', began)
    } catch (error) {
      this.parts.log.info({ err: error, plugin }, 'a statement of a plugin may go on')
      return false
    }
  }

  #make(plugin: string): Guarded {
    return {
      plugin,
      limitMs: this.parts.limitMs,
      minds: (_, isPlatforms) => isPlatforms,
      busySince: client => (this.#busy.get(client)?.has(client) === true ? heldSince(client) : undefined),
      end: (client, cause) => void this.#end(client, plugin, cause)
    }
  }

  async #end(client: PoolClient, plugin: string, cause: EndCause): Promise<void> {
    const reason = `its connection to the database was ended, ${why(cause, this.parts.limitMs)}`
    const takeBack = this.parts.locks.end(client, new Error(reason))
    if (!(await this.#send(client, plugin, cause))) takeBack()
    else if (!this.#told.has(client)) {
      this.#told.add(client)
      const table = cause.kind === 'waits' ? cause.wait.table : undefined
      this.parts.log.error({ plugin, table }, `a plugin: ${reason}`)
      this.parts.onEnded?.(plugin, reason)
    }
  }

  async #send(client: PoolClient, plugin: string, cause: EndCause): Promise<boolean> {
    if (cause.kind === 'waits') return await this.terminate(cause.wait.blocker, plugin, cause.wait.began)
    const pid = processIdOf(client)
    if (cause.kind === 'locks' || cause.kind === 'taken')
      return pid !== undefined && (await this.terminate(pid, plugin))
    cutByWire(client)
    return true
  }
}

function why(cause: EndCause, limitMs: number): string {
  switch (cause.kind) {
    case 'waits':
      return `as it kept ${cause.wait.table ?? 'what the platform needs'} locked and the platform waiting for more than ${limitMs / 1000} seconds: in a transaction that locks tables or rows of others do nothing that takes long`
    case 'locks':
      return `as it had ${cause.locks} locks and PostgreSQL no room for more: lock less in one transaction, and nothing for the session`
    case 'taken':
      return `as ${takenText(cause.lock)}`
    case 'blind':
      return 'as system catalogs were locked, and it was in a transaction or a statement for longest: lock no catalogs, and do nothing that takes long in a transaction'
  }
}
