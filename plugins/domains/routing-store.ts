import { applicationTable } from 'busbar/api/applications'
import type { TrafficTarget } from 'busbar/api/deployments'
import { projectTable } from 'busbar/api/projects'
import type { Database, TableRow, Tx } from 'busbar/sdk'
import type { DomainRow, FeatureRow } from './domain-store.js'

export interface OwnHost {
  readonly hostname: string
  readonly application_id: string
}

interface TargetRow {
  readonly application_id: string
  readonly deployment_id: string
  readonly container_id: string
  readonly host: string
  readonly port: number
  readonly is_running: boolean
}

export const targetOf = (row: TargetRow): TrafficTarget => ({
  deploymentId: row.deployment_id,
  containerId: row.container_id,
  host: row.host,
  port: row.port
})

/** An application with the words that its own name is made of. */
export interface NamedApplication {
  readonly id: string
  readonly project_id: string
  readonly slug: string
  readonly project_slug: string
}

/** What the routing table is made of, and where requests go. */
export class RoutingStore {
  constructor(private readonly db: Database) {}

  async domains(): Promise<readonly DomainRow[]> {
    return await this.db.sql<DomainRow>(
      `select domain.* from $schema.domain domain
       join ${applicationTable.name} application on application.id = domain.application_id
       where application.deleting_at is null order by domain.hostname, domain.path, domain.id`
    )
  }

  async features(): Promise<readonly FeatureRow[]> {
    return await this.db.sql<FeatureRow>(
      'select * from $schema.route_feature where enabled order by created_at, id'
    )
  }

  async ownHosts(): Promise<readonly OwnHost[]> {
    return await this.db.sql<OwnHost>(
      `select own.hostname, own.application_id from $schema.own_host own
       join ${applicationTable.name} application on application.id = own.application_id
       where application.deleting_at is null order by own.hostname`
    )
  }

  async hostnamesOf(
    applicationId: string
  ): Promise<ReadonlyArray<Pick<DomainRow, 'hostname' | 'path' | 'ssl_mode'>>> {
    return await this.db.sql(
      `select hostname, path, ssl_mode from $schema.domain where application_id = ? order by hostname, path`,
      [applicationId]
    )
  }

  async ownHostOf(applicationId: string): Promise<string | undefined> {
    const [row] = await this.db.sql<OwnHost>(
      'select hostname, application_id from $schema.own_host where application_id = ?',
      [applicationId]
    )
    return row?.hostname
  }

  async application(applicationId: string): Promise<NamedApplication | undefined> {
    const [row] = await this.db.sql<
      TableRow<typeof applicationTable, 'id' | 'project_id' | 'slug'> & { readonly project_slug: string }
    >(
      `select application.id, application.project_id, application.slug, project.slug as project_slug
       from ${applicationTable.name} application join ${projectTable.name} project on project.id = application.project_id
       where application.id = ? and application.deleting_at is null`,
      [applicationId]
    )
    return row
  }

  /** Gives a name to an application; false where another application has it, or one of another project has had it. */
  async takeOwnHost(hostname: string, { id, project_id }: NamedApplication, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `insert into $schema.own_host (hostname, project_id, application_id)
       select cast(:hostname as text), cast(:project_id as uuid), cast(:id as uuid)
       where not exists (select from $schema.domain held where held.hostname = :hostname)
       on conflict (hostname) do update set application_id = excluded.application_id
       where own_host.application_id is null and own_host.project_id = excluded.project_id
       returning hostname`,
      { hostname, project_id, id },
      tx
    )
    return rows.length === 1
  }

  /** The ports that domains of an application name. */
  async portsOf(applicationId: string): Promise<readonly number[]> {
    const rows = await this.db.sql<{ container_port: number }>(
      `select distinct container_port from $schema.domain where application_id = ? and container_port is not null
       order by container_port`,
      [applicationId]
    )
    return rows.map(({ container_port }) => container_port)
  }

  /** The same of all applications. */
  async allPorts(): Promise<ReadonlyMap<string, readonly number[]>> {
    const rows = await this.db.sql<{ application_id: string; ports: readonly number[] }>(
      `select application_id, array_agg(distinct container_port order by container_port) as ports
       from $schema.domain where container_port is not null group by application_id`
    )
    return new Map(rows.map(({ application_id, ports }) => [application_id, ports]))
  }

  async targets(): Promise<readonly TargetRow[]> {
    return await this.db.sql<TargetRow>('select * from $schema.target order by application_id')
  }

  async target(applicationId: string): Promise<TargetRow | undefined> {
    const [row] = await this.db.sql<TargetRow>('select * from $schema.target where application_id = ?', [
      applicationId
    ])
    return row
  }

  /** False when the application is gone. */
  async setTarget(applicationId: string, target: TrafficTarget): Promise<boolean> {
    const rows = await this.db.sql(
      `insert into $schema.target (application_id, deployment_id, container_id, host, port, is_running)
       select application.id, cast(:deploymentId as uuid), :containerId, :host, cast(:port as integer), true
       from ${applicationTable.name} application where application.id = :applicationId
       on conflict (application_id) do update set deployment_id = excluded.deployment_id,
         container_id = excluded.container_id, host = excluded.host, port = excluded.port, is_running = true
       returning application_id`,
      { applicationId, ...target }
    )
    return rows.length === 1
  }

  /** Where the container is that requests go to now, null: nowhere; false when they go to another one. */
  async renew(
    applicationId: string,
    containerId: string,
    at: { readonly host: string; readonly port: number } | null
  ): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.target set is_running = cast(:host as text) is not null,
         host = coalesce(:host, host), port = coalesce(cast(:port as integer), port)
       where application_id = :applicationId and container_id = :containerId returning application_id`,
      { applicationId, containerId, host: at?.host ?? null, port: at?.port ?? null }
    )
    return rows.length === 1
  }

  /** Keeps where it was, so that a start finds the port of the container again. */
  async setStopped(applicationId: string): Promise<void> {
    await this.db.sql('update $schema.target set is_running = false where application_id = ?', [
      applicationId
    ])
  }
}
