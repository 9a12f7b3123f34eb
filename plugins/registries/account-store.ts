import { countedRows, type Database, type Page, type ProjectId, type Rows, type Tx } from 'busbar/sdk'

/** Whose accounts: a project's, or those of the installation. */
export type AccountOwner = ProjectId | null

/** A row; `password` is sealed. */
export interface AccountRow {
  readonly id: string
  readonly project_id: string | null
  readonly registry: string
  readonly username: string
  readonly password: string
  readonly created_at: Date
  readonly updated_at: Date
}

const owned = 'project_id is not distinct from cast(:owner as uuid)'
const columns = 'id, project_id, registry, username, password, created_at, updated_at'

export class AccountStore {
  readonly #chosen

  constructor(private readonly db: Database) {
    this.#chosen = db.statement<AccountRow, [string, string]>(
      'account-chosen',
      `
      select ${columns} from $schema.account
      where registry = $2 and (project_id = $1 or project_id is null) order by project_id nulls last limit 1`
    )
  }

  async list(owner: AccountOwner, page: Page): Promise<Rows<AccountRow>> {
    const rows = await this.db.sql<AccountRow>(
      `select ${columns} from $schema.account where ${owned} order by registry, id limit :limit offset :offset`,
      { owner, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(`select count(*) as total from $schema.account where ${owned}`, { owner })
    )
  }

  async find(owner: AccountOwner, id: string): Promise<AccountRow | undefined> {
    const [row] = await this.db.sql<AccountRow>(
      `select ${columns} from $schema.account where ${owned} and id = :id`,
      { owner, id }
    )
    return row
  }

  /** The project's own, else the installation's. */
  async chosen(projectId: string, registry: string): Promise<AccountRow | undefined> {
    return (await this.#chosen([projectId, registry]))[0]
  }

  /** The accounts of an owner, which do not change until `tx` ends: the ids by registry. */
  async hold(owner: AccountOwner, tx: Tx): Promise<ReadonlyMap<string, string>> {
    await this.db.sql(
      "select pg_advisory_xact_lock(hashtextextended('registries.account/' || :id, 0))",
      { id: owner ?? 'installation' },
      tx
    )
    const rows = await this.db.sql<Pick<AccountRow, 'id' | 'registry'>>(
      `select id, registry from $schema.account where ${owned}`,
      { owner },
      tx
    )
    return new Map(rows.map(({ id, registry }) => [registry, id]))
  }

  async insert(account: AccountRow, tx: Tx): Promise<void> {
    await this.db.table<AccountRow>('account', tx).insert(account)
  }

  async replace(
    id: string,
    changes: Pick<AccountRow, 'username' | 'password' | 'updated_at'>,
    tx: Tx
  ): Promise<AccountRow | undefined> {
    const [row] = await this.db.table<AccountRow>('account', tx).where({ id }).update(changes).returning('*')
    return row as AccountRow | undefined
  }

  /** Whether it was there. */
  async remove(owner: AccountOwner, id: string): Promise<boolean> {
    const rows = await this.db.sql(`delete from $schema.account where ${owned} and id = :id returning id`, {
      owner,
      id
    })
    return rows.length > 0
  }

  async removeOfProject(projectId: string): Promise<void> {
    await this.db.sql('delete from $schema.account where project_id = ?', [projectId])
  }
}
