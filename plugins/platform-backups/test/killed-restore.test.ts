import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { withClient } from './faults-kit.js'
import { archiveOfShop, fillerRows, type HasCome, restoreKilledAt } from './killed-restore-kit.js'

test(
  'a restore that is killed before the database has changed is begun again and is whole',
  { timeout: 280_000 },
  async t => {
    const archive = await archiveOfShop(t)
    const moments: ReadonlyArray<readonly [string, HasCome]> = [
      [
        'before the database changes',
        async directory =>
          (await readdir(join(directory, 'restore')).catch((): string[] => [])).includes('state.json')
      ],
      [
        'while rows come in',
        async (_directory, client) => {
          const { rows } = await client.query(
            `select from pg_stat_activity where datname = current_database() and query like 'copy "platform_backups"."filler"%'`
          )
          return rows.length > 0
        }
      ]
    ]
    for (const [moment, hasCome] of moments) {
      const { directory, database, isHalf } = await restoreKilledAt(t, archive, moment, hasCome)
      t.ok(isHalf, `${moment}: it was killed before it was over`)
      const names = await readdir(directory)
      t.ok(names.includes('keys.json'), `${moment}: keys are there`)
      t.notOk(names.includes('restore'), `${moment}: nothing half is left`)
      await withClient(database.url, async client => {
        const { rows: projects } = await client.query('select name from projects.project')
        t.same(projects, [{ name: 'Shop' }], moment)
        const { rows } = await client.query(
          'select count(*)::int as count from platform_backups.filler where length(text) = 31 * 32'
        )
        t.same(rows, [{ count: fillerRows }], moment)
      })
    }
  }
)
