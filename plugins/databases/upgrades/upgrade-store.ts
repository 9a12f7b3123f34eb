import { countedRows, type Database, type Page, type Rows, type Tx } from 'busbar/sdk'
import type { UpgradeAnswer } from '../schemas.js'

export interface UpgradeRow {
  readonly id: string
  readonly database_id: string
  readonly phase: 'running' | 'switched' | 'succeeded' | 'failed'
  readonly from_version: string
  readonly to_version: string
  readonly former_volume: string
  readonly former_image: string | null
  readonly former_image_reference: string | null
  readonly former_image_name: string | null
  readonly log: string
  readonly error: string | null
  readonly begun_at: Date | null
  readonly started_at: Date
  readonly finished_at: Date | null
  readonly kept_until: Date | null
  /** The new volume, where one that was given up after the switch keeps that. */
  readonly kept_volume: string | null
}

const shown = 'id, phase, from_version, to_version, log, error, started_at, finished_at, kept_until'

/** All SQL on upgrades. */
export class UpgradeStore {
  constructor(private readonly db: Database) {}

  async insert(row: UpgradeRow, tx: Tx): Promise<void> {
    await this.db.table<UpgradeRow>('upgrade', tx).insert(row)
  }

  async list(databaseId: string, page: Page): Promise<Rows<UpgradeAnswer>> {
    const rows = await this.db.sql<UpgradeAnswer>(
      `select ${shown} from $schema.upgrade where database_id = :databaseId
      order by started_at desc, id desc limit :limit offset :offset`,
      { databaseId, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql('select count(*) as total from $schema.upgrade where database_id = ?', [databaseId])
    )
  }

  async open(databaseId: string): Promise<UpgradeRow | undefined> {
    const [row] = await this.db.sql<UpgradeRow>(
      `select * from $schema.upgrade where database_id = ? and phase in ('running', 'switched')`,
      [databaseId]
    )
    return row
  }

  async update(id: string, changes: Partial<Omit<UpgradeRow, 'id' | 'database_id'>>, tx?: Tx): Promise<void> {
    await this.db.table('upgrade', tx).where({ id }).update(changes)
  }

  /** From what it was read as to what comes next; false where another process has done it. */
  async move(
    { id, phase, error }: Pick<UpgradeRow, 'id' | 'phase' | 'error'>,
    changes: Partial<Omit<UpgradeRow, 'id' | 'database_id'>>,
    tx: Tx
  ): Promise<boolean> {
    const found = this.db.table('upgrade', tx).where({ id, phase })
    // That it was given up counts, whatever the words are.
    const rows = await (error === null ? found.whereNull('error') : found.whereNotNull('error'))
      .update(changes)
      .returning('id')
    return rows.length > 0
  }

  async say(id: string, line: string): Promise<void> {
    await this.db.sql(`update $schema.upgrade set log = right(log || ? || chr(10), 65536) where id = ?`, [
      line,
      id
    ])
  }

  /** Those that keep a volume: the old one, or the new one where they were given up; of one database, or until before then. */
  async kept(filter: {
    readonly databaseId?: string
    readonly before?: Date
  }): Promise<ReadonlyArray<Pick<UpgradeRow, 'id' | 'database_id'> & { readonly volume: string }>> {
    return await this.db.sql(
      `select id, database_id, coalesce(kept_volume, former_volume) as volume from $schema.upgrade where kept_until is not null
      and (cast(:databaseId as uuid) is null or database_id = :databaseId)
      and (cast(:before as timestamptz) is null or kept_until < :before) order by kept_until, id limit 100`,
      { databaseId: filter.databaseId ?? null, before: filter.before ?? null }
    )
  }
}
