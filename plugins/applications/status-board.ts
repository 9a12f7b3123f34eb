import type { Bus, Clock, Database, Events } from 'busbar/sdk'
import { type ApplicationStatus, applicationFailed } from './api.js'
import type { DeployStore, StatusChange } from './deploy-store.js'

/** A container that is started anew may crash for ever. */
const tellAgainMs = 3_600_000
/** A stop has 30 seconds, and what ends then is heard of a moment later. */
const askedStopMs = 45_000

interface StatusBoardParts {
  readonly store: DeployStore
  readonly db: Database
  readonly events: Events
  readonly bus: Bus
  readonly clock: Clock
}

/** Writes the status of applications, and publishes every change on their channels. */
export class StatusBoard {
  constructor(private readonly parts: StatusBoardParts) {}

  async set(applicationId: string, status: ApplicationStatus): Promise<void> {
    if (await this.parts.store.setStatus(applicationId, status)) this.announce(applicationId, status)
  }

  /** Those of the changes that still fit, with an event of each that is a failure; false when one did not, because something else changed meanwhile. */
  async follow(changes: readonly StatusChange[]): Promise<boolean> {
    if (changes.length === 0) return true
    const { store, db, events, clock } = this.parts
    const now = clock.now()
    const times = {
      now,
      toldBefore: new Date(now.getTime() - tellAgainMs),
      askedSince: new Date(now.getTime() - askedStopMs)
    }
    const written = await db.transaction(async tx => {
      const rows = await store.setStatuses(changes, times, tx)
      const failures = rows.filter(row => row.is_failure)
      await events.emitEach(
        applicationFailed,
        failures.map(({ id, project_id: projectId, name, status }) => ({
          applicationId: id,
          projectId,
          application: name,
          status: status === 'error' ? status : 'unhealthy'
        })),
        tx
      )
      return rows
    })
    for (const { id, status } of written) this.announce(id, status)
    return written.length === changes.length
  }

  announce(applicationId: string, status: ApplicationStatus): void {
    this.parts.bus.publish(`container-status:${applicationId}`, 'status', {
      application_id: applicationId,
      status
    })
  }
}
