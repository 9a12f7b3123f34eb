import type { Log } from 'busbar/sdk'
import type { GuardedConnections } from './guarded-connections.js'
import { longestBusy } from './who-to-end.js'

interface BlindEndParts {
  readonly guarded: GuardedConnections
  readonly log: Log
  readonly unansweredLimitMs: number
}

/**
 * Where nobody can be asked who has the catalogs locked, it is taken to be the connection of a plugin that has been in a
 * transaction or a statement for longest.
 */
export class BlindEnd {
  #endedAt = -Infinity

  constructor(private readonly parts: BlindEndParts) {}

  /** It must have been at it for as long as the question has waited. */
  end(before = Infinity): void {
    const { guarded, log } = this.parts
    const found = longestBusy(
      [...guarded.all].map(one => ({ ...one, since: one.guarded.busySince(one.client) }))
    )
    // Whatever is the matter then, it is nobody's transaction.
    if (before < Infinity && (found?.since === undefined || found.since >= before)) return
    this.#endedAt = performance.now()
    log.warn(
      { plugin: found?.guarded.plugin },
      'system catalogs of the database are locked, and who has them cannot be asked: a plugin that has been in a transaction for longest is ended'
    )
    found?.guarded.end(found.client, { kind: 'blind' }, 1)
  }

  /** The server has let the session's connection in, but has not answered to it since then: to connect, it reads catalogs as well. */
  unanswered(since: number | undefined): void {
    if (since === undefined) return
    if (performance.now() - Math.max(since, this.#endedAt) >= this.parts.unansweredLimitMs) this.end(since)
  }
}
