import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDatabase, createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { busbar } from './cli.js'
import { archives, backUp } from './kit.js'
import { folder, original } from './original-platform.js'

test(
  'data that is there is not replaced unasked, and backed up where it is',
  { timeout: 280_000 },
  async t => {
    const before = await original(t)
    await before.k.stop()
    const directory = await folder(t)
    const database = await createDatabase()
    t.teardown(() => database.drop())
    const options = { directory, databaseUrl: database.url, environment: { BUSBAR_RECOVERY_KEY: before.key } }
    t.equal((await busbar(['restore', before.file], options)).code, 0)
    const present = await createTestKernel({
      state: { directory, database: { ...database, drop: async () => {} } }
    })
    const running = await busbar(['restore', before.file, '--replace'], options)
    t.match(running, { code: 1, stderr: /a platform is running/ })
    const admin = await present.as.session()
    await admin.post('/api/projects', { name: 'Later', slug: 'later' })
    await present.stop()
    t.match(await busbar(['restore', before.file], options), { code: 1, stderr: /--replace/ })
    const replaced = await busbar(['restore', before.file, '--replace'], options)
    t.equal(replaced.code, 0, replaced.stderr)
    const kept = (await readdir(join(directory, 'backups/platform'))).filter(name =>
      name.includes('before-restore')
    )
    t.equal(kept.length, 1)
    const back = join(directory, 'backups/platform', kept[0] ?? '')
    const names = async (): Promise<string[]> => {
      const k = await createTestKernel({
        state: { directory, database: { ...database, drop: async () => {} } }
      })
      const { body } = await (await k.as.session()).get('/api/projects')
      await k.stop()
      return body.map(({ name }: { name: string }) => name).sort()
    }
    t.same(await names(), ['Shop'])
    t.equal((await busbar(['restore', back, '--replace', '--without-snapshot'], options)).code, 0)
    t.same(await names(), ['Later', 'Shop'], 'what was replaced comes back the same way')
  }
)

test('an archive without keys asks for them', { timeout: 280_000 }, async t => {
  const k: TestKernel = await createTestKernel({})
  t.teardown(() => k.close())
  const run = await backUp(await k.as.session())
  t.equal(run.status, 'succeeded')
  const [file = ''] = await archives(k)
  await k.stop()
  const directory = await folder(t)
  const database = await createDatabase()
  t.teardown(() => database.drop())
  const options = { directory, databaseUrl: database.url }
  t.match(await busbar(['restore', file], options), {
    code: 1,
    stderr: /keys of the installation are not in it/
  })
  await writeFile(join(directory, 'keys.json'), await readFile(join(k.state.directory, 'keys.json')), {
    mode: 0o600
  })
  t.equal((await busbar(['restore', file], options)).code, 0)
  await until(async () => (await readdir(directory)).includes('keys.json'), 'keys to be there')
})
