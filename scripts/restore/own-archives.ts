import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { BulkConnection } from 'busbar/sdk'
import type { Settings } from '../../core/config/environment.js'
import { tagOf } from '../../plugins/platform-backups/archive/archive-name.js'
import { openTarget } from './open-target.js'

/** What the platform that is there already knows of its own archives in the bucket. */
export interface OwnArchives {
  /** Its tag in names. */
  readonly installation: string
  /** Keys of those that its runs have uploaded: names of former releases do not say whose they are. */
  readonly keys: ReadonlySet<string>
}

/** Undefined where there is no platform, or one that has made none since names say whose they are. */
export async function ownArchives(
  connection: Pick<BulkConnection, 'query'>
): Promise<OwnArchives | undefined> {
  const [table] = await connection.query<{ present: boolean }>(
    `select to_regclass('platform_backups.installation') is not null as present`
  )
  if (table?.present !== true) return undefined
  const [row] = await connection.query<{ id: string }>(
    'select id::text as id from platform_backups.installation'
  )
  const keys = await connection.query<{ key: string }>(
    'select remote_key as key from platform_backups.run where remote_key is not null'
  )
  return row && { installation: tagOf(row.id), keys: new Set(keys.map(({ key }) => key)) }
}

/** The same for who only asks: no server is begun for it that is not there, nor one that a platform uses. */
export async function ownArchivesHere(settings: Settings): Promise<OwnArchives | undefined> {
  const { databaseUrl, directory } = settings
  const isThere =
    databaseUrl !== undefined ||
    (await stat(join(directory, 'pg18')).then(
      () => true,
      () => false
    ))
  if (!isThere) return undefined
  try {
    const { target, close } = await openTarget(settings)
    try {
      const connection = await target.connect()
      return await ownArchives(connection).finally(async () => await connection.close())
    } finally {
      await close()
    }
  } catch {
    return undefined
  }
}
