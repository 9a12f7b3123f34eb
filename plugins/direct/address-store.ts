import type { Database } from 'busbar/sdk'
import type { Target } from './api.js'

export interface AddressRow {
  readonly application_id: string
  readonly port: number
  readonly deployment_id: string | null
  readonly container_id: string | null
  readonly target_host: string | null
  readonly target_port: number | null
  readonly is_running: boolean
  readonly updated_at: Date
}

/** The target of a row, also while its application is stopped; null before the first deploy. */
export function targetOf(row: AddressRow): Target | null {
  const { deployment_id: deploymentId, container_id: containerId, target_host: host, target_port: port } = row
  return deploymentId === null || containerId === null || host === null || port === null
    ? null
    : { deploymentId, containerId, host, port }
}

export function createAddressStore(db: Database) {
  return {
    all: (): Promise<AddressRow[]> =>
      db.sql<AddressRow>('select * from $schema.address order by application_id'),

    async find(applicationId: string): Promise<AddressRow | undefined> {
      return (
        await db.sql<AddressRow>('select * from $schema.address where application_id = ?', [applicationId])
      )[0]
    },

    async takenPorts(): Promise<ReadonlySet<number>> {
      return new Set(
        (await db.sql<{ port: number }>('select port from $schema.address')).map(row => row.port)
      )
    },

    /** False when the application or the port has a row already. */
    async add(applicationId: string, port: number, now: Date): Promise<boolean> {
      const rows = await db.sql(
        'insert into $schema.address (application_id, port, is_running, updated_at) values (?, ?, false, ?) on conflict do nothing returning port',
        [applicationId, port, now]
      )
      return rows.length === 1
    },

    /** `isRunning` false keeps the target, so that a start finds the port of the container again. */
    async setTarget(applicationId: string, target: Target, now: Date): Promise<AddressRow | undefined> {
      return (
        await db.sql<AddressRow>(
          `update $schema.address set deployment_id = ?, container_id = ?, target_host = ?, target_port = ?, is_running = true, updated_at = ?
         where application_id = ? returning *`,
          [target.deploymentId, target.containerId, target.host, target.port, now, applicationId]
        )
      )[0]
    },

    async setStopped(applicationId: string, now: Date): Promise<void> {
      await db.sql('update $schema.address set is_running = false, updated_at = ? where application_id = ?', [
        now,
        applicationId
      ])
    },

    async remove(applicationId: string): Promise<void> {
      await db.sql('delete from $schema.address where application_id = ?', [applicationId])
    },

    /** Addresses of applications that were deleted while this plugin was off. */
    async removeOrphans(): Promise<void> {
      await db.sql(
        `delete from $schema.address held
         where not exists (select from applications.application owner where owner.id = held.application_id)`
      )
    }
  }
}
export type AddressStore = ReturnType<typeof createAddressStore>
