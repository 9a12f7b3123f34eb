import { randomUUID } from 'node:crypto'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'

takeAwayFromEngine()

test('while no engine is there, what was never made on one is removed, and what was waits', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  await k.disable('runtime-docker', { cascade: true })
  const admin = await k.as.session()
  const rows = async (id: string) =>
    (await k.query('select 1 from databases.database where id = $1', [id])).length
  const create = async () => {
    const slug = `t-${randomUUID().slice(0, 8)}`
    const { body: project } = await admin.post('/api/projects', { name: slug, slug })
    const path = `/api/projects/${project.id}`
    const made = await admin.post(`${path}/databases`, { name: 'shop', type: 'redis' })
    t.equal(made.status, 202)
    return { path, id: made.body.id as string }
  }
  const never = await create()
  const once = await create()
  await k.query("update databases.database set image_reference = 'redis@sha256:0' where id = $1", [once.id])
  for (const { path } of [once, never]) t.equal((await admin.delete(path)).status, 200)
  await until(async () => {
    await k.runRemovalsNow()
    return (await rows(never.id)) === 0
  }, 'the one that was never made to go')
  t.equal(await rows(once.id), 1, 'its volume may be on an engine that is away')
  await k.query('update databases.database set image_reference = null where id = $1', [once.id])
  await until(async () => {
    await k.runRemovalsNow()
    return (await rows(once.id)) === 0
  }, 'the other one to go')
})
