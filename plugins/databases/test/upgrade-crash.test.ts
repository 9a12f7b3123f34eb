import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { containerIn, goOn, killedAt, longMs, projectOf, rowsOf, written } from './crash-lab.js'
import { createDatabase, runIn, untilRunning } from './lab.js'

/** From then on an application finds the new server, whether there is a platform or not. */
const servesAlone = 'after the switch, while its new server serves'

/** When it is killed, what the upgrade leads to, and what the database is afterwards. */
const moments: ReadonlyArray<readonly [string, RegExp, string, string]> = [
  ['while everything is restored for a trial', /^trying a restore/, '15', '14'],
  ['while the old server is stopped', /^stopping the old server/, '15', '14'],
  ['while the copy is made', /^copying everything/, '15', '14'],
  ['while both are compared', /^comparing/, '15', '14'],
  ['after the switch', /^starting version 15/, '15', '15'],
  [servesAlone, /^starting version 15.*-vol-[0-9a-f]{8} with a container/, '15', '15'],
  ['while it is given up', /^bringing back/, '99', '14']
]

const chosen = rotatingSample(
  'a platform that is killed while a database is upgraded',
  moments.map(([when]) => when),
  { always: [servesAlone], others: 1 }
)

for (const [when, moment, target, version] of moments.filter(([when]) => chosen.has(when)))
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
      moment,
      async () => {
        if (when === servesAlone)
          await until(
            async () => (await (await containerIn(state, made.id)).inspect()).State.Running,
            'the new server to be started'
          )
      }
    )
    if (when === servesAlone) {
      const [upgrade] = await rowsOf(state, 'select phase from databases.upgrade where database_id = $1', [
        made.id
      ])
      t.match(upgrade, { phase: 'switched' }, 'its platform was killed before the end')
      await written(state, made.id, body.credentials.password)
    }
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
    t.equal(await sqlOn(k, "select count(*) || ' ' || sum(n) from kept where n > 0"), '200000 20000100000')
    t.equal(
      await sqlOn(k, 'select count(*) from kept where n = -1'),
      when === servesAlone ? '1' : '0',
      'what was written while there was no platform'
    )
    const runtime = k.service(containerRuntime)
    t.same(
      (await runtime.list({ databaseId: made.id })).map(({ name }) => name),
      [made.slug]
    )
    t.equal((await runtime.volumes({ databaseId: made.id })).length, version === '14' ? 1 : 2)
  })
