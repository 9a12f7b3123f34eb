import { randomUUID } from 'node:crypto'
import { containerRuntime } from 'busbar/api/containers'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startLab } from './lab.js'

const hourMs = 3_600_000

test('an old volume that nobody confirms goes when its time is up, and no other', async t => {
  if (!(await requireEngine(t))) return
  const clock = testClock('2026-11-29T01:00:00Z')
  const lab = await startLab(t, { clock, environment: { JWT_EXPIRY_HOURS: '720' } })
  const { k, ann, all, projectId } = lab
  const runtime = k.service(containerRuntime)
  const { body } = await ann.post(all, { name: 'x', type: 'other', image: 'busybox:lab', container_port: 80 })
  await k.query(`update databases.database set task = null, status = 'stopped' where id = '${body.id}'`)
  const kept = async (days: number): Promise<string> => {
    const name = `${body.slug}-vol-${randomUUID().slice(0, 8)}`
    await runtime.ensureVolume(name, { projectId, databaseId: body.id })
    const end = new Date(clock.now().getTime() + days * 24 * hourMs).toISOString()
    await k.query(
      `insert into databases.upgrade (id, database_id, phase, from_version, to_version, former_volume, started_at, kept_until)
      values (gen_random_uuid(), '${body.id}', 'succeeded', '1', '2', '${name}', now(), '${end}')`
    )
    return name
  }
  const [week, longer] = [await kept(7), await kept(8)]
  const names = async () => await runtime.volumeNames({ databaseId: body.id })
  const later = async (ms: number): Promise<void> => {
    clock.set(ms)
    await clock.advance(61_000)
  }
  await later(6 * 24 * hourMs)
  t.ok((await names()).includes(week), 'it is kept for seven days')
  await later(25 * hourMs)
  await until(async () => !(await names()).includes(week), 'the old volume to go')
  t.ok((await names()).includes(longer))
  t.match((await ann.get(`${all}/${body.id}/upgrades`)).body.length, 2)
})
