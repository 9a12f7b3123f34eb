import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type DeployLab, type LabApplication, openLab, sample } from './deploy-lab.js'

/** A build that goes on until it is cancelled. */
const endless = sample('one', 'ok', 'FROM node:20\nCOPY . .\nRUN echo the build has begun && sleep 600\n')
const quick = sample(
  'one',
  'ok',
  'FROM node:20\nWORKDIR /app\nCOPY . .\nRUN echo built\nCMD ["node", "server.js"]\n'
)

/** The settings of the builds plugin from now on. */
async function configure(lab: DeployLab, config: object): Promise<void> {
  const answer = await (await lab.k.as.session()).put('/api/plugins/builds/config', config)
  if (answer.body.state !== 'running') throw new Error(`not configured: ${JSON.stringify(answer.body)}`)
}

const recordOf = async (lab: DeployLab, app: LabApplication, id: string): Promise<any> =>
  (await (await lab.k.as.session()).get(`${app.path}/deployments/${id}`)).body

const messages = (record: any): string[] =>
  String(record.build_logs ?? '')
    .trimEnd()
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line).msg)

test('builds wait for their turn', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  await configure(lab, { concurrent: 1 })
  const admin = await lab.k.as.session()
  const cancel = async (app: LabApplication, id: string) =>
    await admin.post(`${app.path}/deployments/${id}/cancel`)
  const [running, first, second, third] = [
    await lab.application('running', quick),
    await lab.application('first', endless),
    await lab.application('second', quick),
    await lab.application('third', quick)
  ]
  const other = await lab.otherProject('other', quick)
  t.match(await running.deployed(), { status: 'success', waiting_for: null })

  await t.test(
    'several at once: one builds, the others say what they wait for, and hold up nothing else',
    async t => {
      const building = await first.deploy()
      await until(
        async () => messages(await recordOf(lab, first, building.id)).includes('the build has begun'),
        'the first build'
      )
      const waiting = [await second.deploy(), await third.deploy(), await other.deploy()]
      t.match(
        waiting.map(({ status }) => status),
        ['pending', 'pending', 'pending']
      )
      const apps = [second, third, other]
      await until(
        async () =>
          (
            await Promise.all(
              apps.map(async (app, index) => (await recordOf(lab, app, waiting[index].id)).waiting_for)
            )
          ).every(reason => reason !== null),
        'the reasons'
      )
      const records = await Promise.all(
        apps.map(async (app, index) => await recordOf(lab, app, waiting[index].id))
      )
      for (const record of records)
        t.match(record, { status: 'pending', build_started_at: null, finished_at: null })
      const reasons = records.map(({ waiting_for: reason }) => String(reason))
      t.equal(
        reasons.filter(
          reason =>
            reason ===
            'waiting for another build to end: 1 build is running, and this machine takes 1 at once'
        ).length,
        1,
        reasons.join('\n')
      )
      t.equal(
        reasons.filter(reason =>
          /^waiting for its turn: 1 build is running, and \d waits? before it$/.test(reason)
        ).length,
        2,
        reasons.join('\n')
      )
      await until(
        async () =>
          messages(await recordOf(lab, second, waiting[0].id)).some(msg =>
            msg.startsWith('The build is waiting for ')
          ),
        'the reason in the log'
      )

      const reload = (await admin.post(`${running.path}/reload`)).body
      t.match(await running.ended(reload.id), { status: 'success' }, 'what needs no build waits for none')

      t.match(
        await cancel(third, waiting[1].id),
        { status: 202, body: { status: 'failed', error_message: 'cancelled', waiting_for: null } },
        'what waits is cancelled at once'
      )
      await cancel(first, building.id)
      const [a, c] = [await second.ended(waiting[0].id), await other.ended(waiting[2].id)]
      t.match([a.status, c.status], ['success', 'success'])
      t.ok(
        c.build_started_at < a.build_started_at,
        'the project that has had no turn comes first, although it came last'
      )
      t.ok(c.build_ended_at <= a.build_started_at, 'one at a time')
      t.match(a.waiting_for, null)
      t.ok(
        messages(a).some(msg => /^The build begins after a wait of \d+ s\.$/.test(msg)),
        messages(a).join('\n')
      )
      t.match(await recordOf(lab, third, waiting[1].id), { status: 'failed', build_started_at: null })
    }
  )

  await t.test('what waits when the platform stops is built when it is back', async t => {
    const building = await first.deploy()
    await until(
      async () => messages(await recordOf(lab, first, building.id)).includes('the build has begun'),
      'the first build'
    )
    const waiting = await second.deploy()
    await until(async () => (await recordOf(lab, second, waiting.id)).waiting_for !== null, 'the wait')
    await lab.restart()
    t.match(await second.ended(waiting.id), { status: 'success' })
    t.match(await first.ended(building.id), { status: 'failed', error_message: /the platform was stopped/ })
  })
})

test('builds wait for memory, and are refused while a disk is short', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const web = await lab.application('web', quick)

  await configure(lab, { disk_floor_mib: 1_000_000_000 })
  const refused = await web.deployed()
  t.match(refused, {
    status: 'failed',
    step: 'prepare-image',
    build_started_at: null,
    error_message: /are free on the disk of .*nothing is built or pulled with less than.*disk_floor_mib/
  })

  await configure(lab, { reserve_mib: 1_000_000_000 })
  const deployment = await web.deploy()
  await until(async () => (await recordOf(lab, web, deployment.id)).waiting_for !== null, 'the wait')
  t.match(await recordOf(lab, web, deployment.id), {
    status: 'pending',
    waiting_for:
      /^waiting for .* of memory: only .* are free, .* of which are left to the platform and the applications$/
  })

  await configure(lab, { reserve_mib: 1_000_000_000, disk_floor_mib: 1_000_000_000 })
  t.match(
    await web.ended(deployment.id),
    { status: 'failed', waiting_for: null, error_message: /are free on the disk of / },
    'a wait that has become hopeless ends'
  )

  await configure(lab, { reserve_mib: 1_000_000_000 })
  const patient = await web.deploy()
  await until(async () => (await recordOf(lab, web, patient.id)).waiting_for !== null, 'the wait')
  await configure(lab, { reserve_mib: 0, memory_mib: 300 })
  const built = await web.ended(patient.id)
  t.match(built, { status: 'success' })
  t.ok(
    messages(built).some(msg => /\(300 MiB of memory, /.test(msg)),
    'with the caps it was admitted with'
  )
})

test('several processes of one installation share one queue', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  await configure(lab, { concurrent: 1 })
  const second = await createTestKernel({
    state: lab.k.state,
    environment: { BUSBAR_DIRECT_HOST: '127.0.0.3' }
  })
  t.teardown(() => second.stop())
  const slow = sample(
    'one',
    'ok',
    'FROM node:20\nWORKDIR /app\nCOPY . .\nRUN sleep 1\nCMD ["node", "server.js"]\n'
  )
  const apps = await Promise.all(['a', 'b', 'c', 'd'].map(async name => await lab.application(name, slow)))
  const ended = await Promise.all(apps.map(async app => await app.ended((await app.deploy()).id, 120_000)))
  t.same(
    ended.map(({ status }) => status),
    ['success', 'success', 'success', 'success'],
    JSON.stringify(ended.map(({ error_message: message }) => message))
  )
  const builds = ended
    .map(({ build_started_at: begin, build_ended_at: end }) => ({ begin, end }))
    .sort((a, b) => (a.begin < b.begin ? -1 : 1))
  for (const [index, { begin }] of builds.entries())
    t.ok(
      index === 0 || begin >= (builds[index - 1]?.end ?? ''),
      `build ${index} begins when the one before has ended`
    )
})
