import type { BulkConnection } from 'busbar/sdk'
import { detachedBackups } from '../../plugins/backups/detached-copy.js'
import { detachedPlatformBackups } from '../../plugins/platform-backups/detached-copy.js'
import { RestoreError, type Trial } from '../../plugins/platform-backups/restore/restore-target.js'
import { areThere, type NeededColumns } from './tables-there.js'

/** What a plugin does by itself, or in the name of the original, and a copy must not. */
interface DetachedCopy extends NeededColumns {
  readonly plugin: string
  /** Over those that are saved. */
  readonly settings: Readonly<Record<string, unknown>>
  /** Answers what is off, a sentence for each. */
  detach(connection: Pick<BulkConnection, 'query'>): Promise<readonly string[]>
}

const all: readonly DetachedCopy[] = [detachedPlatformBackups, detachedBackups]

export const trial: Trial = {
  detach: async connection => {
    const said: string[] = []
    for (const copy of all) {
      const [found] = await connection.query<{ present: boolean }>(
        'select to_regnamespace($1) is not null as present',
        [copy.schema]
      )
      if (found?.present !== true) continue
      // One that is not detached would write to what the original has, and remove it.
      if (!(await areThere(connection, copy)))
        throw new RestoreError(
          `the archive has tables of another release in ${copy.schema}, which this one cannot detach from the original: use that release for the trial`
        )
      said.push(...(await copy.detach(connection)))
      await unschedule(connection, copy)
    }
    return said
  },
  // By it the engine's containers are told from those of others.
  ownFiles: new Set(['data/runtime-docker/instance-id'])
}

/** What it has set up while it ran; what it declares is housekeeping. Saved settings keep it from setting that up again. */
async function unschedule(
  connection: Pick<BulkConnection, 'query'>,
  { plugin, settings }: DetachedCopy
): Promise<void> {
  await connection.query('delete from kernel.schedule where plugin = $1 and not declared', [plugin])
  if (Object.keys(settings).length === 0) return
  await connection.query(
    `insert into kernel.plugin (id, desired, config, updated_at) values ($1, 'on', $2, now())
    on conflict (id) do update set config = plugin.config || excluded.config, updated_at = now()`,
    [plugin, JSON.stringify(settings)]
  )
}
