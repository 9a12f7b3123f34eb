import { mkdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Installation } from 'busbar/sdk'
import type { Settings } from '../../core/config/environment.js'
import { openBulkConnection } from '../../core/database/bulk-connection.js'
import { migrationLock } from '../../core/database/migrations.js'
import { platformSchemas } from '../../core/database/platform-schemas.js'
import { restoreFolder, restoreStateFile } from '../../core/half-restored.js'
import { createLog } from '../../core/log/log.js'
import { createRedactor } from '../../core/log/redactor.js'
import { release } from '../../core/release.js'
import { readKeyFile } from '../../core/secrets/key-file.js'
import { environmentKeys, type KeySet } from '../../core/secrets/key-source.js'
import { startEmbedded } from '../../embedded-postgres/index.js'
import { readRecipient } from '../../plugins/platform-backups/recovery-key-service.js'
import type { RestoreTarget } from '../../plugins/platform-backups/restore/restore-target.js'
import { endInterruptedWork } from './interrupted-work.js'
import { trial } from './trial.js'

/** The installation that BUSBAR_DIR and DATABASE_URL name, with its own database server where it has one. */
export async function openTarget(
  settings: Settings
): Promise<{ readonly target: RestoreTarget; readonly close: () => Promise<void> }> {
  const { directory, databaseUrl } = settings
  await mkdir(directory, { recursive: true, mode: 0o711 })
  const log = createLog({ level: 'error', format: settings.logFormat, redactor: createRedactor() })
  const given = environmentKeys(process.env)
  const stored = await readKeyFile(directory)
  const server =
    databaseUrl === undefined
      ? await startEmbedded({ directory, log })
      : { url: databaseUrl, stop: async () => {} }
  const installation: Installation = {
    directory,
    pluginFolders: settings.pluginFolders,
    variables: () => settings.usedVariables(),
    keys: () => exported(stored, given),
    connect: async () => await openBulkConnection(server.url),
    schemas: platformSchemas
  }
  const folder = join(directory, restoreFolder)
  return {
    target: {
      directory,
      staging: join(folder, 'files'),
      stateFile: join(directory, restoreStateFile),
      release,
      installation,
      connect: async () => await openBulkConnection(server.url),
      recipients: async connection => {
        const [table] = await connection.query<{ isThere: boolean }>(
          `select to_regclass('platform_backups.recovery_key') is not null as "isThere"`
        )
        const rows =
          table?.isThere === true
            ? await connection.query<{ recipient: string }>(
                'select recipient from platform_backups.recovery_key order by created_at desc, id desc limit 1'
              )
            : []
        const own = await readRecipient(settings.variable('BACKUP_ENCRYPTION_KEY'))
        return [...rows.map(({ recipient }) => recipient), ...(own === undefined ? [] : [own])]
      },
      endInterruptedWork,
      trial,
      environmentKeys: new Map([...(given?.keys ?? [])].map(([id, key]) => [id, key.toString('hex')])),
      migrationLock: `select pg_advisory_xact_lock(${migrationLock.join()})`,
      now: () => new Date()
    },
    close: async () => {
      await server.stop()
      // What was fetched is needed no more; a restore that is not over keeps its own.
      const isOver = await stat(join(directory, restoreStateFile)).then(
        () => false,
        () => true
      )
      if (isOver) await rm(dirname(join(folder, 'files')), { recursive: true, force: true })
    }
  }
}

function exported(stored: KeySet | undefined, given: KeySet | undefined): ReturnType<Installation['keys']> {
  const keys = new Map([...(stored?.keys ?? []), ...(given?.keys ?? [])])
  return {
    current: (given ?? stored)?.current ?? '',
    keys: Object.fromEntries([...keys].map(([id, key]) => [id, key.toString('hex')]))
  }
}
