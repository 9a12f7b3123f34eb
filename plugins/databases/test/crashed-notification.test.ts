import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, startLab } from './lab.js'
import { killServer } from './postgres-lab.js'

test('that a server has crashed is told once an hour, however often it does', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await createDatabase(lab, { type: 'redis', version: '7' })
  const socket = await k.socket(ann)
  socket.subscribe(`database-status:${made.id}`)
  const seen = (status: string): number =>
    socket.frames.filter(({ event, data }) => event === 'status' && data.status === status).length
  const told = async (): Promise<number> => {
    const all = (await ann.get('/api/notifications')).body.items as Array<{ type: string }>
    return all.filter(({ type }) => type === 'database.crashed').length
  }
  /** The engine starts it again by itself. */
  const crash = async (): Promise<void> => {
    const before = [seen('failed'), seen('running')] as const
    await killServer(k, made)
    await until(() => seen('failed') > before[0], 'the crash to be seen')
    await until(() => seen('running') > before[1], 'it to run again')
  }
  await crash()
  await until(async () => (await told()) === 1, 'the crash to be told')
  await crash()
  t.equal(await told(), 1)
  await k.query("update databases.database set failure_told_at = failure_told_at - interval '59 minutes'")
  await crash()
  t.equal(await told(), 1)
  await k.query("update databases.database set failure_told_at = failure_told_at - interval '61 minutes'")
  await crash()
  await until(async () => (await told()) === 2, 'it to be told again after an hour')
})
