import { type Database, definePlugin, kernel, type Migration } from 'busbar/sdk'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import type { Test } from 'tap'

/** A database with what the migration makes, for a store alone; and the platform that it is in. */
export async function openDatabase(
  t: Test,
  migration: Migration
): Promise<{ readonly k: TestKernel; readonly database: Database }> {
  let database: Database | undefined
  const k = await createTestKernel({
    inline: [
      {
        manifest: { id: 'stores', grants: ['database'] },
        definition: definePlugin({
          id: 'stores',
          needs: { db: kernel.database },
          migrations: [migration],
          start: ({ use }) => {
            database = use.db
            return {}
          }
        })
      }
    ]
  })
  t.teardown(async () => await k.close())
  if (database === undefined) throw new Error('the plugin has not started')
  return { k, database }
}
