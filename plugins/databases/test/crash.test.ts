import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, type Lab, removeAll, runIn, untilRunning } from './lab.js'

const longMs = 420_000

/** Runs a platform on this state until what it says matches, and kills it there; the path of the database. */
async function killedAt(
  state: TestKernel['state'],
  asked: { readonly path: string; readonly post: string; readonly body: object },
  moment: RegExp
): Promise<string> {
  const child = spawn(
    process.execPath,
    [
      `--import=${new URL('../../../scripts/test-loader.mjs', import.meta.url).href}`,
      '--conditions=busbar-source',
      fileURLToPath(new URL('crash-child.ts', import.meta.url)),
      JSON.stringify({ url: state.database.url, directory: state.directory, ...asked })
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  let path = asked.path
  const end = setTimeout(() => child.kill('SIGKILL'), longMs)
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      if (!line.startsWith('{')) continue
      const said = JSON.parse(line) as { path?: string; begun?: number; detail?: string }
      if (said.path !== undefined) path = said.path
      if (said.detail !== undefined && moment.test(said.detail)) return path
    }
    throw new Error(`it ended, or took too long, before it said ${moment}`)
  } finally {
    clearTimeout(end)
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

async function projectOf(k: TestKernel): Promise<Lab> {
  const ann = await k.as.session('ann')
  const { body } = await ann.post('/api/projects', { name: 'x', slug: `t-${Date.now().toString(36)}` })
  return { k, ann, projectId: body.id, all: `/api/projects/${body.id}/databases` }
}

/** Goes on with what a killed platform has left. */
async function goOn(t: Test, state: TestKernel['state']): Promise<TestKernel> {
  const k = await createTestKernel({ state })
  t.teardown(async () => {
    await removeAll(k)
    await k.close()
  })
  return k
}

test('a database that was being made when the platform was killed is made by the next one', async t => {
  if (!(await requireDatabaseImages(t))) return
  const first = await createTestKernel()
  const lab = await projectOf(first)
  const { state } = first
  await first.stop()
  const path = await killedAt(
    state,
    { path: '', post: lab.all, body: { name: 'shop', type: 'postgres', version: '15' } },
    /waiting for its server/
  )
  const k = await goOn(t, state)
  const ann = await k.as.session('ann')
  await until(async () => (await ann.get(path)).body.status === 'running', 'it to run', longMs)
  const { body } = await ann.get(`${path}/credentials/reveal`)
  const id = path.split('/').at(-1) ?? ''
  t.equal(
    await runIn(
      k,
      id,
      ['psql', '-h', '127.0.0.1', '-U', 'postgres', '-d', 'shop', '-A', '-t', '-c', 'select 1'],
      {
        PGPASSWORD: body.credentials.password
      }
    ),
    '1'
  )
})

/** When it is killed, what the upgrade leads to, and what the database is afterwards. */
const moments: ReadonlyArray<readonly [string, RegExp, string, string]> = [
  ['while everything is restored for a trial', /^trying a restore/, '15', '14'],
  ['while the old server is stopped', /^stopping the old server/, '15', '14'],
  ['while the copy is made', /^copying everything/, '15', '14'],
  ['while both are compared', /^comparing/, '15', '14'],
  ['after the switch', /^starting version 15/, '15', '15'],
  ['while it is given up', /^bringing back/, '99', '14']
]

for (const [when, moment, target, version] of moments)
  test(`an upgrade whose platform is killed ${when} has lost nothing`, async t => {
    if (!(await requireDatabaseImages(t))) return
    const first = await createTestKernel()
    const lab = await projectOf(first)
    const made = await createDatabase(lab, { type: 'postgres', version: '14' })
    const { body } = await lab.ann.get(`${made.path}/credentials/reveal`)
    const sqlOn = async (k: TestKernel, text: string) =>
      await runIn(
        k,
        made.id,
        ['psql', '-h', '127.0.0.1', '-U', 'postgres', '-d', 'shop', '-A', '-t', '-q', '-c', text],
        { PGPASSWORD: body.credentials.password }
      )
    await sqlOn(first, 'create table kept as select generate_series(1, 200000) as n')
    const { state } = first
    await first.stop()
    await killedAt(
      state,
      { path: made.path, post: `${made.path}/upgrade`, body: { target_version: target } },
      moment
    )
    const k = await goOn(t, state)
    const ann = await k.as.session('ann')
    await until(
      async () => (await ann.get(`${made.path}/upgrades`)).body[0]?.finished_at != null,
      'the upgrade to end',
      longMs
    )
    await untilRunning(ann, made.path)
    t.match((await ann.get(made.path)).body, { version, status: 'running' })
    t.match(await sqlOn(k, 'show server_version'), new RegExp(`^${version}`))
    t.equal(await sqlOn(k, "select count(*) || ' ' || sum(n) from kept"), '200000 20000100000')
    const runtime = k.service(containerRuntime)
    t.same(
      (await runtime.list({ databaseId: made.id })).map(({ name }) => name),
      [made.slug]
    )
    t.equal((await runtime.volumes({ databaseId: made.id })).length, version === '14' ? 1 : 2)
  })

for (const [when, moment] of [
  ['when it has begun', /^a backup is restored/],
  ['after the switch', /-vol-[0-9a-f]{8} without a container/],
  ['while the restored data is served', /-vol-[0-9a-f]{8} with a container/]
] as const)
  test(`a restore whose platform is killed ${when} leaves what was there, or all of the backup`, async t => {
    if (!(await requireDatabaseImages(t))) return
    const first = await createTestKernel()
    const lab = await projectOf(first)
    const made = await createDatabase(lab, { type: 'postgres', version: '15' })
    const { body } = await lab.ann.get(`${made.path}/credentials/reveal`)
    const sqlOn = async (k: TestKernel, text: string) =>
      await runIn(
        k,
        made.id,
        ['psql', '-h', '127.0.0.1', '-U', 'postgres', '-d', 'shop', '-A', '-t', '-q', '-c', text],
        { PGPASSWORD: body.credentials.password }
      )
    await sqlOn(first, 'create table kept as select generate_series(1, 100000) as n')
    await lab.ann.post(`${made.path}/backups`)
    const backup = await until(
      async () => {
        const [one] = (await lab.ann.get(`${made.path}/backups`)).body
        return one?.finished_at == null ? undefined : one
      },
      'the backup to end',
      longMs
    )
    t.equal(backup.status, 'succeeded', backup.log)
    await sqlOn(first, 'insert into kept values (0)')
    const { state } = first
    await first.stop()
    await killedAt(
      state,
      { path: made.path, post: `${made.path}/restore`, body: { backup_id: backup.id } },
      moment
    )
    const k = await goOn(t, state)
    const ann = await k.as.session('ann')
    const restore = await until(
      async () => {
        const [one] = (await ann.get(`${made.path}/restores`)).body
        return one?.finished_at == null ? undefined : one
      },
      'the restore to end',
      longMs
    )
    await until(async () => (await ann.get(made.path)).body.status === 'running', 'it to run', longMs)
    t.equal(await sqlOn(k, 'select count(*) from kept'), restore.status === 'succeeded' ? '100000' : '100001')
    const runtime = k.service(containerRuntime)
    await until(
      async () =>
        (await runtime.list({ databaseId: made.id })).length === 1 &&
        (await runtime.volumes({ databaseId: made.id })).length === 1,
      'nothing to stay beside it',
      longMs
    )
  })
