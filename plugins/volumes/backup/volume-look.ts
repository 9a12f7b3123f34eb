import { applicationTable } from 'busbar/api/applications'
import { type Database, isUuid, type Tx } from 'busbar/sdk'

/** A volume with what is told of it where it is backed up. */
export interface SeenVolume {
  readonly id: string
  readonly name: string
  readonly mount_path: string
  readonly engine_name: string
  readonly size_bytes: number | null
  readonly is_made: boolean
  readonly project_id: string
  readonly application_id: string
  readonly application_name: string
  readonly application_slug: string
}

const text = `
  select v.id, v.name, v.mount_path, v.engine_name, v.size_bytes::float8 as size_bytes, a.project_id,
    a.id as application_id, a.name as application_name, a.slug as application_slug,
    exists (select 1 from $schema.engine_volume e where e.name = v.engine_name and e.discarded_at is null) as is_made
  from $schema.volume v join ${applicationTable.name} a on a.id = v.application_id`

/** Undefined where it does not exist, or it or its application is being deleted. */
export async function volumeById(db: Database, id: string): Promise<SeenVolume | undefined> {
  if (!isUuid(id)) return undefined
  const [row] = await db.sql<SeenVolume>(
    `${text} where v.id = ? and v.deleting_at is null and a.deleting_at is null`,
    [id]
  )
  return row
}

/** The same of what has that name in an application. */
export async function volumeByName(
  db: Database,
  applicationId: string,
  name: string
): Promise<SeenVolume | undefined> {
  const [row] = await db.sql<SeenVolume>(
    `${text} where v.application_id = :applicationId and v.name = :name and v.deleting_at is null and a.deleting_at is null`,
    { applicationId, name }
  )
  return row
}

/** Also one that is being deleted. */
export async function hasApplication(db: Database, id: string): Promise<boolean> {
  const rows = await db.sql(`select from ${applicationTable.name} a where a.id = ?`, [id])
  return rows.length > 0
}

interface SeenApplication {
  readonly project_id: string
  readonly name: string
  readonly slug: string
  readonly is_leaving: boolean
}

/** Also one whose row goes in `tx`, as it was. */
export async function applicationOf(
  db: Database,
  applicationId: string,
  tx?: Tx
): Promise<SeenApplication | undefined> {
  const [row] = await db.sql<SeenApplication>(
    `select a.project_id, a.name, a.slug, a.deleting_at is not null as is_leaving from ${applicationTable.name} a where a.id = ?`,
    [applicationId],
    tx
  )
  return row
}
