import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDatabase, createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { busbar } from './cli.js'
import { withClient } from './faults-kit.js'
import { archives, backUp, makeKey } from './kit.js'
import { folder } from './original-platform.js'

test(
  'an archive without keys is restored without them where that is wanted: secrets are entered again',
  { timeout: 280_000 },
  async t => {
    const k = await createTestKernel({})
    t.teardown(() => k.close())
    const admin = await k.as.session()
    const { body: project } = await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
    const env = `/api/projects/${project.id as string}/env`
    await admin.put(env, { vars: [{ key: 'PASSWORD', value: 'correct horse', is_secret: true }] })
    t.match(await backUp(admin), { status: 'succeeded', encrypted: false })
    const [file = ''] = await archives(k)
    await k.stop()
    const directory = await folder(t)
    const database = await createDatabase()
    t.teardown(() => database.drop())
    const options = { directory, databaseUrl: database.url }
    t.match(await busbar(['restore', file], options), { code: 1, stderr: /With --without-keys/ })
    const without = await busbar(['restore', file, '--without-keys'], options)
    t.equal(without.code, 0, without.stderr)
    t.notOk((await readdir(directory)).includes('keys.json'), 'no keys came from anywhere')
    const next = await createTestKernel({
      state: { directory, database: { ...database, drop: async () => {} } }
    })
    t.teardown(() => next.stop())
    const again = await next.as.session()
    t.match((await again.get(`/api/projects/${project.id as string}`)).body, { name: 'Shop' })
    const [variable] = (await again.get(env)).body
    t.not((await again.get(`${env}/${variable.id}/reveal`)).status, 200, 'what was sealed does not open')
    await again.put(env, { vars: [{ key: 'PASSWORD', value: 'battery staple', is_secret: true }] })
    const [entered] = (await again.get(env)).body
    t.match((await again.get(`${env}/${entered.id}/reveal`)).body, { value: 'battery staple' })
    t.not(
      await readFile(join(directory, 'keys.json'), 'utf8'),
      await readFile(join(k.state.directory, 'keys.json'), 'utf8')
    )
  }
)

test(
  'keys of the environment that are others than those of the archive are refused before anything changes',
  { timeout: 280_000 },
  async t => {
    const k = await createTestKernel({})
    t.teardown(() => k.close())
    const admin = await k.as.session()
    const key = await makeKey(admin)
    t.match(await backUp(admin), { status: 'succeeded', encrypted: true })
    const [file = ''] = await archives(k)
    await k.stop()
    const own = JSON.parse(await readFile(join(k.state.directory, 'keys.json'), 'utf8')) as {
      readonly current: string
      readonly keys: Readonly<Record<string, string>>
    }
    const directory = await folder(t)
    const database = await createDatabase()
    t.teardown(() => database.drop())
    const restoring = async (value = '') =>
      await busbar(['restore', file], {
        directory,
        databaseUrl: database.url,
        environment: { BUSBAR_RECOVERY_KEY: key, ENCRYPTION_KEYS: `${own.current}:${value}` }
      })
    t.match(await restoring('b2'.repeat(32)), {
      code: 1,
      stderr: `the environment gives key ${own.current} another value than the archive has: unset ENCRYPTION_KEY`
    })
    const schemas = async (): Promise<string[]> =>
      await withClient(database.url, async client => {
        const { rows } = await client.query<{ name: string }>(
          "select nspname as name from pg_namespace where nspname in ('kernel', 'projects') order by 1"
        )
        return rows.map(({ name }) => name)
      })
    t.same(await schemas(), [])
    t.same(await readdir(directory), [])
    const same = await restoring(own.keys[own.current])
    t.equal(same.code, 0, same.stderr)
    t.same(await schemas(), ['kernel', 'projects'])
  }
)
