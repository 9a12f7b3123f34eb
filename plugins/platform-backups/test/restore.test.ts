import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { busbar } from './cli.js'
import { backUp } from './kit.js'
import { startOldPostgres } from './old-postgres-lab.js'
import { folder, hello, looksAsBefore, original } from './original-platform.js'

test(
  'a platform is restored onto a server of an older major, with plugins of strangers, by the recovery key',
  { timeout: 280_000 },
  async t => {
    const old = await startOldPostgres(t)
    if (old === undefined) return
    const before = await original(t)
    await before.k.stop()
    const directory = await folder(t)
    const databaseUrl = await old.createDatabase('restored')
    const options = { directory, databaseUrl }
    const lost = await busbar(['restore', before.file], options)
    t.match(lost, { code: 1, stderr: /recovery key/ })
    const other = await busbar(['restore', before.file], {
      ...options,
      environment: { BUSBAR_RECOVERY_KEY: 'AGE-SECRET-KEY-1QQQ' }
    })
    t.equal(other.code, 1)
    t.notOk(JSON.stringify(other).includes('QQQ'), 'a key is not shown')
    const restored = await busbar(['restore', before.file, '--key-file', before.keyFile], options)
    t.equal(restored.code, 0, restored.stderr)
    t.notOk(JSON.stringify(restored).includes(before.key))
    t.equal((await stat(join(directory, 'keys.json'))).mode & 0o777, 0o600)
    t.equal(await readFile(join(directory, 'plugins/notes/bin/link'), 'utf8'), 'kept')
    t.equal((await stat(join(directory, 'plugins/notes/bin/run'))).mode & 0o777, 0o755)
    t.same(
      await readFile(join(directory, 'data/runtime-docker/instance-id'), 'utf8').catch(() => ''),
      before.instanceId
    )
    t.same(
      (await readdir(directory)).filter(name => name.startsWith('restore')),
      []
    )
    const k = await createTestKernel({
      plugins: [hello],
      state: { directory, database: { url: databaseUrl, drop: async () => {} } }
    })
    t.teardown(() => k.close())
    await looksAsBefore(t, before, k.url)
    const admin = await k.as.session()
    t.match((await admin.get('/api/x/hello/greetings')).body, [{ message: 'Hello, Ada!' }])
    t.match((await admin.post('/api/x/hello/greetings', { name: 'Bob' })).body, { message: 'Ahoy, Bob!' })
    t.not((await k.query('select next_at from kernel.schedule')).length, 0, 'schedules are there')
    t.match(await backUp(admin), { status: 'succeeded' }, 'and it can be backed up again')
  }
)
