import { randomUUID } from 'node:crypto'
import { type Database, definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { createImageName } from '../migrations/004-create-image-name.js'
import { ImageNameStore } from '../registry/image-names.js'

test('the part of image names that nobody can guess stays for an application, and is made of nothing that is known', async t => {
  let db: Database | undefined
  const definition = definePlugin({
    id: 'names',
    needs: { db: kernel.database },
    migrations: [createImageName],
    start: ({ use }) => {
      db = use.db
      return {}
    }
  })
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'names', grants: ['database'] }, definition }]
  })
  t.teardown(async () => await k.close())
  if (db === undefined) throw new Error('the plugin has not started')
  const names = new ImageNameStore(db)
  const [mine, yours] = [randomUUID(), randomUUID()]
  const token = await names.tokenOf(mine)
  t.match(token, /^[0-9a-f]{20}$/)
  t.equal(await names.tokenOf(mine), token)
  t.not(await names.tokenOf(yours), token)
  await names.remove(mine)
  t.not(await names.tokenOf(mine), token, 'the same application, deleted and made again')
})
