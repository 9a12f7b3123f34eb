import { randomUUID } from 'node:crypto'
import type { Database, Tx } from 'busbar/sdk'
import type { MadeResource, RemovedResource, SourceKind } from '../api.js'

/** What backups are made of, as it was when it was last seen. */
export interface SourceRow {
  readonly id: string
  readonly project_id: string
  readonly kind: SourceKind
  readonly resource_id: string
  readonly name: string
  readonly slug: string
  readonly engine: string
  readonly version: string
  readonly application_id: string | null
  readonly application_name: string | null
  readonly mount_path: string | null
  /** Sealed. */
  readonly blueprint: string | null
  readonly deleted_at: Date | null
}

const columns = `id, project_id, kind, resource_id, name, slug, engine, version, application_id, application_name, mount_path,
  blueprint, deleted_at`

/** Of a `source s`. */
const isOrphaned =
  's.deleted_at is not null and exists (select from $schema.backup b where b.source_id = s.id and b.deleting_at is null)'

export class SourceStore {
  constructor(private readonly db: Database) {}

  /** What is known of it becomes what it is now; until `tx` ends nothing else begins for it. */
  async hold(kind: SourceKind, resource: MadeResource, tx: Tx): Promise<SourceRow> {
    const [row] = await this.db.sql<SourceRow>(
      `insert into $schema.source (id, project_id, kind, resource_id, name, slug, engine, version, application_id, application_name, mount_path)
      values (:id, :project_id, :kind, :resource_id, :name, :slug, :engine, :version, :application_id, :application_name, :mount_path)
      on conflict (kind, resource_id) do update set name = excluded.name, slug = excluded.slug, engine = excluded.engine,
        version = excluded.version, application_id = excluded.application_id, application_name = excluded.application_name,
        mount_path = excluded.mount_path
      returning ${columns}`,
      {
        id: randomUUID(),
        project_id: resource.projectId,
        kind,
        resource_id: resource.id,
        name: resource.name,
        slug: resource.slug,
        engine: resource.engine,
        version: resource.version,
        application_id: resource.application?.id ?? null,
        application_name: resource.application?.name ?? null,
        mount_path: resource.mountPath
      },
      tx
    )
    if (row === undefined) throw new Error('a source was neither inserted nor updated')
    return row
  }

  /** As it was last seen: what it is of cannot be asked. */
  async lock(id: string, tx: Tx): Promise<SourceRow | undefined> {
    const [row] = await this.db.sql<SourceRow>(
      `select ${columns} from $schema.source where id = :id for update`,
      { id },
      tx
    )
    return row
  }

  async find(id: string): Promise<SourceRow | undefined> {
    const [row] = await this.db.sql<SourceRow>(`select ${columns} from $schema.source where id = :id`, { id })
    return row
  }

  async of(kind: SourceKind, resourceId: string, tx?: Tx): Promise<SourceRow | undefined> {
    const [row] = await this.db.sql<SourceRow>(
      `select ${columns} from $schema.source where kind = :kind and resource_id = :resourceId`,
      { kind, resourceId },
      tx
    )
    return row
  }

  async keepBlueprint(id: string, blueprint: string): Promise<void> {
    await this.db.sql('update $schema.source set blueprint = :blueprint where id = :id', { id, blueprint })
  }

  /** Those that are there, as far as is known. */
  async alive(): Promise<SourceRow[]> {
    return await this.db.sql<SourceRow>(
      `select ${columns} from $schema.source where deleted_at is null order by id`
    )
  }

  async ofApplication(applicationId: string, tx: Tx): Promise<SourceRow[]> {
    return await this.db.sql<SourceRow>(
      `select ${columns} from $schema.source where application_id = :applicationId order by id`,
      { applicationId },
      tx
    )
  }

  /** What is kept in applications of what is gone. */
  async orphanedInApplications(): Promise<Array<SourceRow & { readonly application_id: string }>> {
    return await this.db.sql(
      `select ${columns} from $schema.source s where application_id is not null and ${isOrphaned} order by id`
    )
  }

  /** The same of those that had that name; ids. */
  async formerOf(
    kind: SourceKind,
    of: { readonly projectId: string; readonly applicationId: string; readonly name: string },
    tx: Tx
  ): Promise<string[]> {
    const rows = await this.db.sql<{ id: string }>(
      `select id from $schema.source s where kind = :kind and project_id = :projectId and application_id = :applicationId
        and name = :name and ${isOrphaned} order by id`,
      { kind, ...of },
      tx
    )
    return rows.map(({ id }) => id)
  }

  async bury(
    id: string,
    { at, blueprint }: { readonly at: Date; readonly blueprint: string | null },
    tx: Tx
  ): Promise<void> {
    await this.db.sql(
      'update $schema.source set deleted_at = :at, blueprint = coalesce(:blueprint, blueprint) where id = :id and deleted_at is null',
      { id, at, blueprint },
      tx
    )
  }

  /** Tombstones without a backup are of no use. */
  async forgetEmpty(): Promise<void> {
    const isEmpty =
      's.deleted_at is not null and not exists (select from $schema.backup b where b.source_id = s.id) and not exists (select from $schema.config c where c.source_id = s.id)'
    await this.db.sql(
      `delete from $schema.restore r using $schema.source s where s.id = r.source_id and r.status <> 'running' and ${isEmpty}`
    )
    await this.db.sql(
      `delete from $schema.source s where ${isEmpty} and not exists (select from $schema.restore r where r.source_id = s.id)`
    )
  }
}

export const removedOf = (row: SourceRow): RemovedResource => ({
  id: row.resource_id,
  projectId: row.project_id,
  name: row.name,
  slug: row.slug,
  engine: row.engine,
  version: row.version
})
