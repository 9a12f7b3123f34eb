import type { Log } from 'busbar/sdk'
import type { GuardedConnections } from './guarded-connections.js'
import { longestBusy } from './who-to-end.js'

/** Where nobody can be asked who has the catalogs locked: it must have been in a transaction for as long as that was waited for. */
export function endLongest(guarded: GuardedConnections, log: Log): void {
  const found = longestBusy(
    [...guarded.all].map(one => ({ ...one, since: one.guarded.busySince(one.client) }))
  )
  log.warn(
    { plugin: found?.guarded.plugin },
    'system catalogs of the database are locked, and who has them cannot be asked: a plugin that has been in a transaction for longest is ended'
  )
  found?.guarded.end(found.client, { kind: 'blind' }, 1)
}
