import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { startEngineLab } from './engine-lab.js'
import { untilRunning } from './lab.js'
import { filledPostgres, heldDumps, leftOf, startWriter, untilEnded, untilUpgraded } from './postgres-lab.js'

const longMs = 420_000
const isHere = async (t: Test): Promise<boolean> =>
  (await requireDatabaseImages(t)) && (await requireSecondEngine(t))

const moments = [
  ['while everything is restored for a trial', /^trying a restore/, 'failed', '14'],
  ['while the copy is made', /^copying everything/, 'failed', '14'],
  ['after the switch', /^starting version 15/, 'succeeded', '15']
] as const
const chosen = rotatingSample(
  'an engine that is killed while a database is upgraded',
  moments.map(([when]) => when),
  { always: ['after the switch'], others: 1 }
)

for (const [when, moment, phase, version] of moments.filter(([when]) => chosen.has(when)))
  test(`an upgrade whose engine is killed ${when} loses no row`, async t => {
    if (!(await isHere(t))) return
    const lab = await startEngineLab(t)
    const { ann, k, engine } = lab
    const made = await filledPostgres(lab)
    const writer = startWriter(t, lab, made)
    await writer.untilMore()
    await ann.post(`${made.path}/upgrade`, { target_version: '15' })
    const detail = async (): Promise<boolean> =>
      moment.test((await ann.get(made.path)).body.status_detail ?? '')
    await until(detail, `the upgrade to be at ${moment}`, longMs)
    await engine.kill()
    await engine.start()
    const upgrade = await untilUpgraded(ann, made)
    t.match(upgrade, { phase }, upgrade.log)
    await untilRunning(ann, made.path)
    await writer.untilMore()
    t.same(await writer.lost(), [])
    t.match((await ann.get(made.path)).body, { version, status: 'running' })
    t.match(await leftOf(k, made), { containers: [made.slug], volumes: phase === 'failed' ? 1 : 2 })
  })

test('a database whose engine is away when its backup ends is not left busy', async t => {
  if (!(await isHere(t))) return
  const lab = await startEngineLab(t)
  const { ann, k, engine } = lab
  const made = await filledPostgres(lab)
  const writer = startWriter(t, lab, made)
  await writer.untilMore()
  const dumps = await heldDumps(t, lab, made)
  await ann.post(`${made.path}/backups`)
  await dumps.untilOneWaits()
  await engine.kill()
  const backup = await untilEnded(ann, made.path, 'backups')
  t.equal(backup.status, 'failed')
  await engine.start()
  await dumps.release()
  await until(async () => (await ann.get(made.path)).body.status === 'running', 'it to be idle', longMs)
  t.match(await ann.post(`${made.path}/restart`), { status: 200 })
  t.same(await writer.lost(), [])
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
})
