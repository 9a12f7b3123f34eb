import { countedRows, type Database, type Page, type Rows, type Tx } from 'busbar/sdk'

/** A row without what is secret. */
export interface CertificateRow {
  readonly id: string
  readonly name: string
  readonly issuer: string
  readonly subjects: readonly string[]
  readonly not_before: Date
  readonly not_after: Date
  readonly created_at: Date
}

/** `chain` and `private_key` are sealed. */
export interface SealedRow extends CertificateRow {
  readonly chain: string
  readonly private_key: string
}

/** What admins were told of last. */
type Warned = 'expiring' | 'expired'

const columns = 'id, name, issuer, subjects, not_before, not_after, created_at'

export class CertificateStore {
  constructor(private readonly db: Database) {}

  async list(page: Page): Promise<Rows<CertificateRow>> {
    const rows = await this.db.sql<CertificateRow>(
      `select ${columns} from $schema.certificate order by name, id limit :limit offset :offset`,
      { ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql('select count(*) as total from $schema.certificate')
    )
  }

  /** Those for any of these subjects. */
  async usable(subjects: readonly string[], page: Page): Promise<Rows<CertificateRow>> {
    const filter = { subjects }
    const usable = 'subjects && cast(:subjects as text[])'
    const rows = await this.db.sql<CertificateRow>(
      `select ${columns} from $schema.certificate where ${usable}
       order by name, id limit :limit offset :offset`,
      { ...filter, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(`select count(*) as total from $schema.certificate where ${usable}`, filter)
    )
  }

  async find(id: string): Promise<CertificateRow | undefined> {
    const [row] = await this.db.sql<CertificateRow>(
      `select ${columns} from $schema.certificate where id = ?`,
      [id]
    )
    return row
  }

  async sealed(ids: readonly string[]): Promise<readonly SealedRow[]> {
    return await this.db.sql<SealedRow>(
      `select ${columns}, chain, private_key from $schema.certificate where id = any(cast(? as uuid[])) order by id`,
      [ids]
    )
  }

  /** False when there is one of that name. */
  async insert(row: SealedRow): Promise<boolean> {
    const rows = await this.db.sql(
      `insert into $schema.certificate (${columns}, chain, private_key)
       values (:id, :name, :issuer, :subjects, :not_before, :not_after, :created_at, :chain, :private_key)
       on conflict (name) do nothing returning id`,
      { ...row }
    )
    return rows.length === 1
  }

  /** Throws the error of PostgreSQL while something refers to it. */
  async remove(id: string): Promise<boolean> {
    const rows = await this.db.sql('delete from $schema.certificate where id = ? returning id', [id])
    return rows.length === 1
  }

  /** Notes that admins are told of those that end before `soon`, or have ended; which they are, and of what. */
  async markWarned(
    { now, soon }: { readonly now: Date; readonly soon: Date },
    tx: Tx
  ): Promise<ReadonlyArray<Pick<CertificateRow, 'id' | 'name' | 'not_after'> & { readonly warned: Warned }>> {
    return await this.db.sql(
      `update $schema.certificate set warned = state.due
       from (select id, case when not_after <= :now then 'expired' else 'expiring' end as due
             from $schema.certificate where not_after <= :soon) state
       where certificate.id = state.id and certificate.warned is distinct from state.due
       returning certificate.id, name, not_after, warned`,
      { now, soon },
      tx
    )
  }
}
