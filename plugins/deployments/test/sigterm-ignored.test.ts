import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from './deploy-lab.js'

test('a version that ignores SIGTERM has its 30 seconds, and is killed then', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const ignoring = await lab.application('ignores-sigterm', sample('ignores-sigterm', 'ignores-sigterm'))
  t.match(await ignoring.deployed(), { status: 'success' })
  const [old] = await ignoring.containers()
  const events = await engine.getEvents({
    filters: { type: ['container'], event: ['kill', 'die'], container: [old?.Id ?? ''] }
  })
  const seen: Array<{ at: number; what: string }> = []
  events.on('data', (chunk: Buffer) => {
    for (const line of String(chunk).trim().split('\n')) {
      const { Action: action, Actor: actor, timeNano: at } = JSON.parse(line)
      seen.push({
        at: at / 1e6,
        what: action === 'die' ? `exit ${actor.Attributes.exitCode}` : `signal ${actor.Attributes.signal}`
      })
    }
  })
  t.teardown(() => {
    ;(events as unknown as { destroy(): void }).destroy()
  })
  await ignoring.push(sample('next'))
  const replacing = await ignoring.deployed()
  t.match(replacing, { status: 'success', old_version_killed: null })
  await until(async () => (await ignoring.containers()).length === 1, 'the old version is gone', 90_000)
  const told = await ignoring.ended(replacing.id)
  t.equal(told.old_version_killed, true)
  t.match(
    told.build_logs,
    /"level":"warning","msg":"The old version did not end within 30 s of SIGTERM and was killed: .*exec/
  )
  t.same(
    seen.map(({ what }) => what),
    ['signal 15', 'signal 9', 'exit 137']
  )
  const graceMs = (seen[1]?.at ?? 0) - (seen[0]?.at ?? 0)
  t.ok(graceMs >= 29_000, `killed after ${Math.round(graceMs)} ms`)
  t.equal(await (await fetch((await ignoring.read()).direct_url)).text(), 'next')
  await ignoring.push(sample('last'))
  const last = await ignoring.deployed()
  await until(async () => (await ignoring.containers()).length === 1, 'that one ended by itself', 90_000)
  t.equal((await ignoring.ended(last.id)).old_version_killed, false)
  t.equal((await admin.delete(ignoring.path)).status, 200)
})
