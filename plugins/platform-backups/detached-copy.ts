import type { BulkConnection } from 'busbar/sdk'

/**
 * For who restores the platform as a copy beside the original: it uploads nothing and makes no backups by itself, and is an installation
 * of its own, which gets an id with its first archive: what the original has uploaded is a stranger's.
 */
export const detachedPlatformBackups = {
  plugin: 'platform-backups',
  settings: { enabled: false },
  schema: 'platform_backups',
  needed: { remote: ['id', 'enabled', 'updated_at'], run: ['remote_key', 'is_uploaded'] },
  detach: async (connection: Pick<BulkConnection, 'query'>): Promise<string[]> => {
    // What is saved beats the environment, so that is off too.
    await connection.query(
      `insert into platform_backups.remote (id, enabled, updated_at) values (true, false, now())
      on conflict (id) do update set enabled = false, updated_at = now()`
    )
    // Of the names of former releases those are its own that its runs have.
    await connection.query('update platform_backups.run set remote_key = null, is_uploaded = false')
    const [found] = await connection.query<{ named: boolean }>(
      `select to_regclass('platform_backups.installation') is not null as named`
    )
    if (found?.named === true) {
      await connection.query('delete from platform_backups.installation')
      await connection.query('delete from platform_backups.left_upload')
    }
    return [
      'the remote of backups of the platform is off, and none are made by themselves: PUT /api/backups/remote and the setting enabled of platform-backups turn them on'
    ]
  }
}
