import { applicationTable } from 'busbar/api/applications'
import {
  countedRows,
  type Database,
  type Page,
  type ProjectId,
  type Rows,
  type TableRow,
  type Tx
} from 'busbar/sdk'

/** A row; `value` is sealed. */
export interface VariableRow {
  readonly id: string
  readonly key: string
  readonly value: string
  readonly is_secret: boolean
  readonly created_at: Date
  readonly updated_at: Date
}

/** What containers get; `is_own`: it is the application's. */
type MergedRow = Pick<VariableRow, 'id' | 'key' | 'value' | 'is_secret'> & { readonly is_own: boolean }

/** Whose variables: a project's own when `applicationId` is null, else the application's. */
export interface VariableOwner {
  readonly projectId: ProjectId
  readonly applicationId: string | null
}

interface SealedVariable {
  readonly id: string
  readonly key: string
  readonly value: string
  readonly is_secret: boolean
}
interface SealedUpdate {
  readonly id: string
  readonly value: string | null
  readonly is_secret: boolean
}

const owned = 'project_id = :projectId and application_id is not distinct from cast(:applicationId as uuid)'
const columns = 'id, key, value, is_secret, created_at, updated_at'

export class VariableStore {
  readonly #merged
  readonly #owner

  constructor(private readonly db: Database) {
    // `distinct on` keeps the first row of a key: the application's before the project's.
    this.#merged = db.statement<MergedRow, [string, string]>(
      'variable-merged',
      `
      select distinct on (key) id, key, value, is_secret, application_id is not null as is_own from $schema.variable
      where project_id = $1 and (application_id is null or application_id = $2) order by key, application_id nulls last`
    )
    this.#owner = db.statement<TableRow<typeof applicationTable, 'id'>, [string, string]>(
      'variable-owner',
      `select a.id from ${applicationTable.name} a where a.project_id = $1 and a.id = $2 and a.deleting_at is null`
    )
  }

  /** False when the application is being deleted; the guard has seen to the project. */
  async hasOwner({ projectId, applicationId }: VariableOwner, tx?: Tx): Promise<boolean> {
    if (applicationId === null) return true
    return (await this.#owner([projectId, applicationId], tx)).length > 0
  }

  async list(owner: VariableOwner, page: Page): Promise<Rows<VariableRow>> {
    const rows = await this.db.sql<VariableRow>(
      `select ${columns} from $schema.variable where ${owned} order by key, id limit :limit offset :offset`,
      { ...owner, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(`select count(*) as total from $schema.variable where ${owned}`, { ...owner })
    )
  }

  async find(owner: VariableOwner, id: string): Promise<VariableRow | undefined> {
    const [row] = await this.db.sql<VariableRow>(
      `select ${columns} from $schema.variable where ${owned} and id = :id`,
      { ...owner, id }
    )
    return row
  }

  async merged(projectId: string, applicationId: string): Promise<readonly MergedRow[]> {
    return await this.#merged([projectId, applicationId])
  }

  /** All of an owner's; the set is locked until `tx` ends, even when it is empty. */
  async hold(owner: VariableOwner, tx: Tx): Promise<VariableRow[]> {
    await this.db.sql(
      "select pg_advisory_xact_lock(hashtextextended('environment.variable/' || :id, 0))",
      { id: owner.applicationId ?? owner.projectId },
      tx
    )
    return await this.db.sql<VariableRow>(
      `select ${columns} from $schema.variable where ${owned} order by key, id`,
      { ...owner },
      tx
    )
  }

  async remove(owner: VariableOwner, ids: readonly string[], tx: Tx): Promise<void> {
    if (ids.length > 0)
      await this.db.sql(
        `delete from $schema.variable where ${owned} and id = any(:ids)`,
        { ...owner, ids: [...ids] },
        tx
      )
  }

  async update(owner: VariableOwner, updates: readonly SealedUpdate[], now: Date, tx: Tx): Promise<void> {
    if (updates.length === 0) return
    await this.db.sql(
      `
      update $schema.variable v set value = coalesce(wanted.value, v.value), is_secret = wanted.is_secret, updated_at = :now
      from unnest(cast(:ids as uuid[]), cast(:values as text[]), cast(:secrets as boolean[])) as wanted (id, value, is_secret)
      where v.id = wanted.id and v.project_id = :projectId and v.application_id is not distinct from cast(:applicationId as uuid)`,
      {
        ...owner,
        now,
        ids: updates.map(({ id }) => id),
        values: updates.map(({ value }) => value),
        secrets: updates.map(update => update.is_secret)
      },
      tx
    )
  }

  async insert(owner: VariableOwner, variables: readonly SealedVariable[], now: Date, tx: Tx): Promise<void> {
    if (variables.length === 0) return
    await this.db.table('variable', tx).insert(
      variables.map(variable => ({
        ...variable,
        project_id: owner.projectId,
        application_id: owner.applicationId,
        created_at: now,
        updated_at: now
      }))
    )
  }

  async removeOfApplication(applicationId: string): Promise<void> {
    await this.db.sql('delete from $schema.variable where application_id = ?', [applicationId])
  }

  async removeOfProject(projectId: string): Promise<void> {
    await this.db.sql('delete from $schema.variable where project_id = ?', [projectId])
  }
}
