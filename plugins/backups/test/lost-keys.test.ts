import { test } from 'tap'
import {
  backUp,
  contentOf,
  createDatabase,
  lines,
  openPlatform,
  pathOf,
  restore,
  writeContent
} from './kit.js'

test(
  'backups that are made after the keys of the installation were lost can be restored',
  { timeout: 120_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const content = lines(100)
    const id = await createDatabase(opened, 'Orders', content)
    const path = pathOf(project, id)
    const before = await backUp(admin, path)
    const keys = async () =>
      await k.query<{ id: string }>('select id from backups.encryption_key order by created_at, id')
    t.equal((await keys()).length, 1)
    // As by a restore without keys: what is sealed stays, and does not open any more.
    await k.query("update backups.encryption_key set identity = overlay(identity placing 'AAAAAAAA' from 20)")
    const after = await backUp(admin, path)
    t.match(after, { status: 'succeeded' })
    await writeContent(probe, id, 'lost\n')
    t.match(await restore(admin, path, { backup_id: before.id }), {
      status: 'failed',
      error: /cannot be decrypted: restore the key of the installation/
    })
    t.match(await restore(admin, path, { backup_id: after.id }), { status: 'succeeded' })
    t.equal(await contentOf(probe, id), content)
    await backUp(admin, path)
    t.equal((await keys()).length, 2, 'the other key is made once')
  }
)
