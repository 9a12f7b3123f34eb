import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { goOn, killedAt, longMs, projectOf, written } from './crash-lab.js'
import { createDatabase, runIn } from './lab.js'
import { untilEnded } from './postgres-lab.js'

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

const restoreMoments = [
  ['when it has begun', /^a backup is restored/],
  ['after the switch', /-vol-[0-9a-f]{8} without a container/],
  ['while the restored data is served', /-vol-[0-9a-f]{8} with a container/]
] as const
const chosen = rotatingSample(
  'a platform that is killed while a database is restored',
  restoreMoments.map(([when]) => when),
  { always: ['after the switch'], others: 1 }
)

for (const [when, moment] of restoreMoments.filter(([when]) => chosen.has(when)))
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

test('a row that what was restored has taken stays when the platform is killed behind it', async t => {
  if (!(await requireDatabaseImages(t))) return
  const first = await createTestKernel()
  const lab = await projectOf(first)
  const made = await createDatabase(lab, { type: 'postgres', version: '15' })
  const { body } = await lab.ann.get(`${made.path}/credentials/reveal`)
  const { password } = body.credentials
  const sqlOn = async (k: TestKernel, text: string) =>
    await runIn(
      k,
      made.id,
      ['psql', '-h', '127.0.0.1', '-U', 'postgres', '-d', 'shop', '-A', '-t', '-q', '-c', text],
      { PGPASSWORD: password }
    )
  await sqlOn(first, 'create table kept as select generate_series(1, 1000) as n')
  await lab.ann.post(`${made.path}/backups`)
  const backup = await untilEnded(lab.ann, made.path, 'backups')
  t.equal(backup.status, 'succeeded', backup.log)
  const { state } = first
  await first.stop()
  await killedAt(
    state,
    { path: made.path, post: `${made.path}/restore`, body: { backup_id: backup.id } },
    /-vol-[0-9a-f]{8} with a container/,
    async () => await written(state, made.id, password)
  )
  const k = await goOn(t, state)
  const ann = await k.as.session('ann')
  t.match(await untilEnded(ann, made.path, 'restores'), { status: 'succeeded' })
  await until(async () => (await ann.get(made.path)).body.status === 'running', 'it to run', longMs)
  t.equal(await sqlOn(k, 'select count(*) from kept where n = -1'), '1')
  t.equal(await sqlOn(k, 'select count(*) from kept'), '1001')
  const runtime = k.service(containerRuntime)
  await until(
    async () =>
      (await runtime.list({ databaseId: made.id })).length === 1 &&
      (await runtime.volumes({ databaseId: made.id })).length === 1,
    'nothing to stay beside it',
    longMs
  )
})
