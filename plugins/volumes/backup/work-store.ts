import { randomUUID } from 'node:crypto'
import type { Database, Lease, Tx } from 'busbar/sdk'
import { enginePrefixLength } from '../volume-name.js'

/** What is done with a volume that has to be put back afterwards, whatever becomes of the platform. */
export interface WorkRow {
  /** Another one each time that something is begun. */
  readonly id: string
  readonly volume_id: string
  readonly what: 'backup' | 'restore'
  readonly application_id: string
  readonly engine_name: string
  /** Its container is to be started again. */
  readonly has_stopped: boolean
  /** The volume that the restore unpacks into; null of a backup. */
  readonly spare_name: string | null
  /** All of it is unpacked, and the two are being exchanged. */
  readonly is_exchanging: boolean
}

/** `undone`: what was there before it is there. */
type RestoreOutcome = 'restored' | 'undone'

type NewWork = Pick<WorkRow, 'volume_id' | 'what' | 'application_id' | 'engine_name' | 'spare_name'>

const columns = 'id, volume_id, what, application_id, engine_name, has_stopped, spare_name, is_exchanging'
const others = 'o.application_id = w.application_id and o.id <> w.id and o.has_stopped'

export class WorkStore {
  constructor(private readonly db: Database) {}

  /** What an earlier one has stopped stays to be started. */
  async begin(work: NewWork): Promise<WorkRow> {
    const row: WorkRow = { id: randomUUID(), ...work, has_stopped: false, is_exchanging: false }
    await this.db
      .table('backup_work')
      .insert({ ...row, hold: null, held_until: null })
      .onConflict(['volume_id', 'what'])
      .merge(['id', 'application_id', 'engine_name', 'spare_name', 'is_exchanging', 'hold', 'held_until'])
    return row
  }

  /** Of the restore that begins nothing is known yet; null: who makes backups knows how the newest has ended. */
  async noteRestore(volumeId: string, restoreId: string | null, tx?: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.volume set restore_id = :restoreId, restore_outcome = null where id = :volumeId',
      { volumeId, restoreId },
      tx
    )
  }

  /** How the newest restore has ended: the first time counts. */
  async noteOutcome(volumeId: string, outcome: RestoreOutcome, tx?: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.volume set restore_outcome = coalesce(restore_outcome, :outcome) where id = :volumeId',
      { volumeId, outcome },
      tx
    )
  }

  /** Null of one that is not over, or not the newest. */
  async outcomeOf(volumeId: string, restoreId: string): Promise<RestoreOutcome | null> {
    const [row] = await this.db.sql<{ readonly restore_outcome: RestoreOutcome | null }>(
      'select restore_outcome from $schema.volume where id = :volumeId and restore_id = :restoreId',
      { volumeId, restoreId }
    )
    return row?.restore_outcome ?? null
  }

  async find(volumeId: string, what: WorkRow['what']): Promise<WorkRow | undefined> {
    const [row] = await this.db.sql<WorkRow>(
      `select ${columns} from $schema.backup_work where volume_id = :volumeId and what = :what`,
      { volumeId, what }
    )
    return row
  }

  /** Whatever has not been put back. */
  async left(): Promise<readonly WorkRow[]> {
    return await this.db.sql<WorkRow>(`select ${columns} from $schema.backup_work order by volume_id, what`)
  }

  /** Of who puts it back. */
  leaseOf({ id }: Pick<WorkRow, 'id'>): Lease {
    const hold = randomUUID()
    return {
      take: async ({ now, until }) => {
        const rows = await this.db.sql(
          `update $schema.backup_work set hold = :hold, held_until = :until
          where id = :id and coalesce(held_until < :now, true) returning id`,
          { id, hold, until, now }
        )
        if (rows.length > 0) return 'taken'
        const [row] = await this.db.sql('select 1 from $schema.backup_work where id = ?', [id])
        return row === undefined ? 'over' : 'busy'
      },
      prolong: async until => {
        await this.db.sql(
          'update $schema.backup_work set held_until = :until where id = :id and hold = :hold',
          {
            id,
            hold,
            until
          }
        )
      },
      release: async () => {
        await this.db.sql(
          'update $schema.backup_work set hold = null, held_until = null where id = :id and hold = :hold',
          { id, hold }
        )
      }
    }
  }

  /** False where another process has put it back meanwhile: what it would exchange with has gone. */
  async noteExchange({ id }: Pick<WorkRow, 'id'>, isExchanging: boolean, tx?: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      'update $schema.backup_work set is_exchanging = :isExchanging where id = :id returning id',
      { id, isExchanging },
      tx
    )
    return rows.length > 0
  }

  /** Before the application is stopped. Answers whether that was done for another volume of it already. */
  async noteStop({ id }: Pick<WorkRow, 'id'>): Promise<{ readonly isShared: boolean }> {
    const [noted] = await this.db.sql<{ readonly isShared: boolean }>(
      `
      update $schema.backup_work w set has_stopped = true where w.id = :id
      returning exists (select 1 from $schema.backup_work o where ${others}) as "isShared"`,
      { id }
    )
    return noted ?? { isShared: false }
  }

  /** It did not run, and is not started again; but for one that was stopped for another volume of it. */
  async noteIdle({ id }: Pick<WorkRow, 'id'>): Promise<void> {
    await this.db.sql(
      `
      update $schema.backup_work w set has_stopped = exists (select 1 from $schema.backup_work o where ${others})
      where w.id = :id`,
      { id }
    )
  }

  /**
   * Whether the application is to be started now: it may stand still for another volume of it as well, and whoever ends last starts it. A
   * row that has nothing to start any more is gone.
   */
  async endsStop({ id, application_id: applicationId }: WorkRow): Promise<boolean> {
    return await this.db.transaction(async tx => {
      const rows = await this.db.sql<Pick<WorkRow, 'id' | 'has_stopped'>>(
        'select id, has_stopped from $schema.backup_work where application_id = :applicationId order by id for update',
        { applicationId },
        tx
      )
      const isDue = rows.some(row => row.id === id && row.has_stopped)
      if (isDue && !rows.some(row => row.id !== id && row.has_stopped)) return true
      await this.db.sql('delete from $schema.backup_work where id = :id', { id }, tx)
      return false
    })
  }

  async end({ id }: Pick<WorkRow, 'id'>): Promise<void> {
    await this.db.sql('delete from $schema.backup_work where id = :id', { id })
  }

  /** Why its container stays as it is for now: the name of the volume, which may be deleted, and what is done with it. */
  async standing(
    applicationId: string
  ): Promise<{ readonly name: string; readonly what: WorkRow['what'] } | undefined> {
    const [row] = await this.db.sql<{ readonly name: string; readonly what: WorkRow['what'] }>(
      `
      select substr(engine_name, :begin) as name, what from $schema.backup_work
      where application_id = :applicationId order by what desc, engine_name limit 1`,
      { applicationId, begin: enginePrefixLength + 1 }
    )
    return row
  }
}
