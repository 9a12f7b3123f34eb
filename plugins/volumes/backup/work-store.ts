import type { Database, Tx } from 'busbar/sdk'

/** What is done with a volume that has to be put back afterwards, whatever becomes of the platform. */
export interface WorkRow {
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

export class WorkStore {
  constructor(private readonly db: Database) {}

  async begin(row: WorkRow, tx?: Tx): Promise<void> {
    await this.db.table<WorkRow>('backup_work', tx).insert(row).onConflict(['volume_id', 'what']).merge()
  }

  async find(volumeId: string, what: WorkRow['what']): Promise<WorkRow | undefined> {
    const [row] = await this.db.sql<WorkRow>(
      `
      select volume_id, what, application_id, engine_name, has_stopped, spare_name, is_exchanging
      from $schema.backup_work where volume_id = :volumeId and what = :what`,
      { volumeId, what }
    )
    return row
  }

  async note(
    { volume_id, what }: Pick<WorkRow, 'volume_id' | 'what'>,
    changes: Partial<Pick<WorkRow, 'has_stopped' | 'is_exchanging'>>
  ): Promise<void> {
    await this.db.table<WorkRow>('backup_work').where({ volume_id, what }).update(changes)
  }

  async end(volumeId: string, what: WorkRow['what']): Promise<void> {
    await this.db.sql('delete from $schema.backup_work where volume_id = :volumeId and what = :what', {
      volumeId,
      what
    })
  }

  /** Why its container stays as it is for now: the name of the volume, and what is done with it. */
  async standing(
    applicationId: string
  ): Promise<{ readonly name: string; readonly what: WorkRow['what'] } | undefined> {
    const [row] = await this.db.sql<{ readonly name: string; readonly what: WorkRow['what'] }>(
      `
      select v.name, w.what from $schema.backup_work w join $schema.volume v on v.id = w.volume_id
      where w.application_id = ? order by w.what desc, v.name limit 1`,
      [applicationId]
    )
    return row
  }
}
