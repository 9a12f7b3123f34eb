import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { archiveOfShop, restoreKilledAt } from './killed-restore-kit.js'

test(
  'a restore that is killed once the database has changed is finished, and a platform starts from it',
  { timeout: 280_000 },
  async t => {
    const { directory, database } = await restoreKilledAt(
      t,
      await archiveOfShop(t),
      'once the database has changed',
      async (_directory, client) => {
        const { rows } = await client.query(`select from pg_namespace where nspname = 'kernel'`)
        return rows.length > 0
      }
    )
    const next = await createTestKernel({
      state: { directory, database: { ...database, drop: async () => {} } }
    })
    t.teardown(() => next.stop())
    const { body } = await (await next.as.session()).get('/api/projects')
    t.same(
      body.map(({ name }: { name: string }) => name),
      ['Shop']
    )
  }
)
