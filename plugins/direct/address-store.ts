import { applicationTable } from 'busbar/api/applications'
import type { TrafficTarget } from 'busbar/api/deployments'
import type { Database, TableRow } from 'busbar/sdk'
import type { PortHistory } from './port-choice.js'

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
export function targetOf(row: AddressRow): TrafficTarget | null {
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

    /** Undefined when there is no such application. */
    async slugOf(applicationId: string): Promise<string | undefined> {
      return (
        await db.sql<TableRow<typeof applicationTable, 'slug'>>(
          `select a.slug from ${applicationTable.name} a where a.id = ?`,
          [applicationId]
        )
      )[0]?.slug
    },

    async ports(): Promise<PortHistory> {
      const rows = await db.sql<{ port: number; released_at: Date | null }>(
        `select port, null as released_at from $schema.address
         union all select port, released_at from $schema.released_port order by released_at, port`
      )
      const held = new Set<number>()
      const released = new Map<number, Date>()
      for (const { port, released_at: at } of rows)
        if (at === null) held.add(port)
        else released.set(port, at)
      return { held, released }
    },

    /**
     * False when the application or the port has a row already, or when the port has been in use since it was
     * known to have been released at `releasedAt` (null: never).
     */
    async add(
      applicationId: string,
      { port, releasedAt }: { readonly port: number; readonly releasedAt: Date | null },
      now: Date
    ): Promise<boolean> {
      const rows = await db.sql(
        `insert into $schema.address (application_id, port, is_running, updated_at)
         select cast(:applicationId as uuid), cast(:port as integer), false, cast(:now as timestamptz)
         where (select released_at from $schema.released_port where port = :port)
           is not distinct from cast(:releasedAt as timestamptz)
         on conflict do nothing returning port`,
        { applicationId, port, releasedAt, now }
      )
      return rows.length === 1
    },

    /** `isRunning` false keeps the target, so that a start finds the port of the container again. */
    async setTarget(
      applicationId: string,
      target: TrafficTarget,
      now: Date
    ): Promise<AddressRow | undefined> {
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

    async remove(applicationId: string, now: Date): Promise<void> {
      await db.sql(releasing('application_id = :applicationId'), { applicationId, now })
    },

    /** Addresses of applications that were deleted while this plugin was off. */
    async removeOrphans(now: Date): Promise<void> {
      await db.sql(
        releasing(
          `not exists (select from ${applicationTable.name} owner where owner.id = held.application_id)`
        ),
        { now }
      )
    }
  }
}
export type AddressStore = ReturnType<typeof createAddressStore>

/** Removes addresses and remembers their ports, in one statement. */
const releasing = (which: string): string =>
  `with removed as (delete from $schema.address held where ${which} returning port)
   insert into $schema.released_port (port, released_at) select port, cast(:now as timestamptz) from removed
   on conflict (port) do update set released_at = excluded.released_at`
