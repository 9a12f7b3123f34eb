import type { Bus } from 'busbar/sdk'
import type { ApplicationStatus } from './api.js'
import type { DeployStore, StatusChange } from './deploy-store.js'

/** Writes the status of applications, and publishes every change on their channels. */
export class StatusBoard {
  constructor(
    private readonly store: DeployStore,
    private readonly bus: Bus
  ) {}

  async set(applicationId: string, status: ApplicationStatus): Promise<void> {
    if (await this.store.setStatus(applicationId, status)) this.announce(applicationId, status)
  }

  /** Those of the changes that still fit; false when one did not, because something else changed meanwhile. */
  async follow(changes: readonly StatusChange[]): Promise<boolean> {
    if (changes.length === 0) return true
    const written = new Set(await this.store.setStatuses(changes))
    for (const { id, status } of changes) if (written.has(id)) this.announce(id, status)
    return written.size === changes.length
  }

  announce(applicationId: string, status: ApplicationStatus): void {
    this.bus.publish(`container-status:${applicationId}`, 'status', {
      application_id: applicationId,
      status
    })
  }
}
