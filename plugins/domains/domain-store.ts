import { applicationTable } from 'busbar/api/applications'
import { certificateTable } from 'busbar/api/certificates'
import { projectTable, reachableIn } from 'busbar/api/projects'
import {
  countedRows,
  type Database,
  type Page,
  type ProjectId,
  type Reach,
  type Rows,
  type Tx
} from 'busbar/sdk'

export type SslMode = 'automatic' | 'custom' | 'off'

/** What somebody has asked for. */
export interface DomainRules {
  readonly hostname: string
  readonly path: string
  readonly strip_path: boolean
  readonly internal_path: string
  readonly container_port: number | null
  readonly ssl_mode: SslMode
  readonly ssl_provider: string | null
  readonly force_https: boolean
  readonly certificate_id: string | null
  readonly advanced_config: readonly object[] | null
}

/** What a check has shown. */
export interface TlsState {
  readonly verified_at: Date | null
  readonly tls_status: string
  readonly tls_issuer: string | null
  readonly tls_not_after: Date | null
  readonly tls_last_checked_at: Date | null
  readonly tls_error: string | null
  readonly tls_advisory: string | null
}

export interface DomainRow extends DomainRules, TlsState {
  readonly id: string
  readonly application_id: string
  readonly created_at: Date
}

export interface FeatureRow {
  readonly id: string
  readonly domain_id: string
  readonly feature_type: string
  readonly config: Readonly<Record<string, unknown>>
  readonly enabled: boolean
  readonly created_at: Date
  readonly updated_at: Date
}

/** Whose a hostname is. */
interface Holder {
  readonly hostname: string
  /** Null: the own name of an application, all of whose paths are taken. */
  readonly path: string | null
  readonly domain_id: string | null
  readonly application_id: string | null
  readonly project_id: string
  readonly ssl_mode: SslMode | null
  readonly certificate_id: string | null
}

export interface TlsOverviewRow extends TlsState {
  readonly id: string
  readonly hostname: string
  readonly ssl_mode: SslMode
  readonly certificate_name: string | null
  readonly application_id: string
  readonly application_name: string
  readonly project_id: string
}

export interface CheckedDomain extends TlsState {
  readonly id: string
  readonly application_id: string
  readonly hostname: string
  readonly ssl_mode: SslMode
}

const inProject = `application_id = :applicationId and exists (
  select from ${applicationTable.name} owner where owner.id = :applicationId and owner.project_id = :projectId)`
const checkedColumns = `id, application_id, hostname, ssl_mode, verified_at, tls_status, tls_issuer, tls_not_after,
  tls_last_checked_at, tls_error, tls_advisory`

/** An application in its project. */
export interface Place {
  readonly projectId: ProjectId
  readonly applicationId: string
}

export class DomainStore {
  readonly #overview
  readonly #overviewCount

  constructor(private readonly db: Database) {
    const reachable = `from $schema.domain domain
      join ${applicationTable.name} application on application.id = domain.application_id
      join ${projectTable.name} project on project.id = application.project_id
      left join ${certificateTable.name} certificate on certificate.id = domain.certificate_id
      where application.deleting_at is null and ${reachableIn('project', { pins: '$1', user: '$2' })}`
    this.#overview = db.statement<TlsOverviewRow, [Reach['pins'], Reach['userId'], number, number]>(
      'tls-overview',
      `select domain.id, domain.hostname, domain.ssl_mode, domain.verified_at, domain.tls_status, domain.tls_issuer,
        domain.tls_not_after, domain.tls_last_checked_at, domain.tls_error, domain.tls_advisory,
        certificate.name as certificate_name, domain.application_id, application.name as application_name,
        application.project_id
       ${reachable} order by domain.hostname, domain.path, domain.id limit $3 offset $4`
    )
    this.#overviewCount = db.statement<{ total: number }, [Reach['pins'], Reach['userId']]>(
      'tls-overview-count',
      `select count(*) as total ${reachable}`
    )
  }

  async list(place: Place, page: Page): Promise<Rows<DomainRow>> {
    const rows = await this.db.sql<DomainRow>(
      `select * from $schema.domain where ${inProject} order by hostname, path, id limit :limit offset :offset`,
      { ...place, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(`select count(*) as total from $schema.domain where ${inProject}`, { ...place })
    )
  }

  async overview({ pins, userId }: Reach, page: Page): Promise<Rows<TlsOverviewRow>> {
    const rows = await this.#overview([pins, userId, page.limit, page.offset])
    return await countedRows(page, rows, () => this.#overviewCount([pins, userId]))
  }

  async find(place: Place, id: string, tx?: Tx): Promise<DomainRow | undefined> {
    const [row] = await this.db.sql<DomainRow>(
      `select * from $schema.domain where ${inProject} and id = :id`,
      { ...place, id },
      tx
    )
    return row
  }

  /** What hostnames belong to whom does not change until `tx` ends. */
  async holdNames(tx: Tx): Promise<void> {
    await this.db.sql("select pg_advisory_xact_lock(hashtextextended('domains.hostnames', 0))", [], tx)
  }

  /** Who has these names; `below` names a wildcard's domain, with a dot in front, and finds all directly below it. */
  async holders(
    { names, below }: { readonly names: readonly string[]; readonly below: string | null },
    tx: Tx
  ): Promise<readonly Holder[]> {
    const isMeant = `(held.hostname = any(cast(:names as text[])) or (cast(:below as text) is not null
      and right(held.hostname, length(:below)) = :below and strpos(left(held.hostname, -length(:below)), '.') = 0))`
    return await this.db.sql<Holder>(
      `select held.hostname, held.path, held.id as domain_id, held.application_id, application.project_id, held.ssl_mode, held.certificate_id
       from $schema.domain held join ${applicationTable.name} application on application.id = held.application_id
       where ${isMeant}
       union all
       select held.hostname, null, null, held.application_id, held.project_id, null, null from $schema.own_host held where ${isMeant}`,
      { names, below },
      tx
    )
  }

  async count(applicationId: string, tx: Tx): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>(
      'select count(*) as total from $schema.domain where application_id = ?',
      [applicationId],
      tx
    )
    return row?.total ?? 0
  }

  async insert(row: DomainRow, tx: Tx): Promise<void> {
    await this.db.table('domain', tx).insert(stored(row))
  }

  async update(id: string, changes: DomainRules & TlsState, tx: Tx): Promise<DomainRow | undefined> {
    const [row] = await this.db.table('domain', tx).where({ id }).update(stored(changes)).returning('*')
    return row as DomainRow | undefined
  }

  /** Serves the other paths of a hostname as `changed` is served; their ids. */
  async followTls(
    changed: Pick<
      DomainRow,
      'id' | 'application_id' | 'hostname' | 'ssl_mode' | 'certificate_id' | 'force_https'
    >,
    state: TlsState,
    tx: Tx
  ): Promise<readonly string[]> {
    const { id, application_id, hostname, ssl_mode, certificate_id, force_https } = changed
    const rows = (await this.db
      .table('domain', tx)
      .where({ application_id, hostname })
      .whereNot({ id })
      .update({ ssl_mode, certificate_id, force_https, ...state })
      .returning('id')) as ReadonlyArray<{ readonly id: string }>
    return rows.map(row => row.id)
  }

  async remove(place: Place, id: string, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `delete from $schema.domain where ${inProject} and id = :id returning id`,
      { ...place, id },
      tx
    )
    return rows.length === 1
  }

  async removeOfApplication(applicationId: string): Promise<void> {
    await this.db.transaction(async tx => {
      await this.db.sql('delete from $schema.domain where application_id = ?', [applicationId], tx)
      await this.db.sql('delete from $schema.target where application_id = ?', [applicationId], tx)
      await this.db.sql(
        'update $schema.own_host set application_id = null where application_id = ?',
        [applicationId],
        tx
      )
    })
  }

  /** The hostnames that are served with each, in order. */
  async usesOf(
    certificateIds: readonly string[]
  ): Promise<ReadonlyArray<{ readonly certificate_id: string; readonly hostname: string }>> {
    return await this.db.sql(
      `select certificate_id, hostname from $schema.domain where certificate_id = any(cast(? as uuid[]))
       group by certificate_id, hostname order by certificate_id, hostname`,
      [certificateIds]
    )
  }

  async checked(id: string): Promise<CheckedDomain | undefined> {
    const [row] = await this.db.sql<CheckedDomain>(
      `select ${checkedColumns} from $schema.domain where id = ?`,
      [id]
    )
    return row
  }

  /** Those that were looked at longest ago. */
  async mostStale(before: Date, atMost: number): Promise<readonly CheckedDomain[]> {
    return await this.db.sql<CheckedDomain>(
      `select ${checkedColumns} from $schema.domain where tls_last_checked_at is null or tls_last_checked_at < ?
       order by tls_last_checked_at nulls first, id limit ?`,
      [before, atMost]
    )
  }

  /** Whether the rules are those that were checked: otherwise it was changed meanwhile, and the check says nothing of it. */
  async recordCheck({ id, hostname, ssl_mode }: CheckedDomain, state: TlsState, tx: Tx): Promise<boolean> {
    const rows = await this.db
      .table('domain', tx)
      .where({ id, hostname, ssl_mode })
      .update({ ...state })
      .returning('id')
    return rows.length === 1
  }

  async features(domainIds: readonly string[]): Promise<readonly FeatureRow[]> {
    return domainIds.length === 0
      ? []
      : await this.db.sql<FeatureRow>(
          'select * from $schema.route_feature where domain_id = any(cast(? as uuid[])) order by created_at, id',
          [domainIds]
        )
  }

  async feature(domainId: string, type: string, tx: Tx): Promise<FeatureRow | undefined> {
    const [row] = await this.db.sql<FeatureRow>(
      'select * from $schema.route_feature where domain_id = ? and feature_type = ?',
      [domainId, type],
      tx
    )
    return row
  }

  async upsertFeature(row: FeatureRow, tx: Tx): Promise<FeatureRow> {
    const [kept] = await this.db.sql<FeatureRow>(
      `insert into $schema.route_feature (id, domain_id, feature_type, config, enabled, created_at, updated_at)
       values (:id, :domain_id, :feature_type, cast(:config as jsonb), :enabled, :created_at, :updated_at)
       on conflict (domain_id, feature_type) do update
       set config = excluded.config, enabled = excluded.enabled, updated_at = excluded.updated_at returning *`,
      { ...row, config: JSON.stringify(row.config) },
      tx
    )
    return kept ?? row
  }

  async removeFeature(domainId: string, featureId: string): Promise<boolean> {
    const rows = await this.db.sql(
      'delete from $schema.route_feature where domain_id = ? and id = ? returning id',
      [domainId, featureId]
    )
    return rows.length === 1
  }
}

const stored = <R extends DomainRules>(row: R) => ({
  ...row,
  advanced_config: row.advanced_config === null ? null : JSON.stringify(row.advanced_config)
})
