import { randomUUID } from 'node:crypto'
import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { containerOf, startLab, untilRunning } from './lab.js'
import { untilEnded } from './postgres-lab.js'
import { slowDatabase, untilEnding } from './slow-lab.js'

takeAwayFromEngine()

test('while a database is restarted or stopped nothing else is begun with it', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await slowDatabase(t, lab)
  const { path } = made
  const socket = await k.socket(ann)
  socket.subscribe(`database-status:${made.id}`)
  const isRefused = async (during: string): Promise<void> => {
    t.match((await ann.get(path)).body, { status: 'running' }, 'its status is shown as it was')
    t.match(await ann.post(`${path}/backups`), { status: 409 }, `a backup during ${during}`)
    for (const verb of ['start', 'stop', 'restart', 'reload'])
      t.match(
        await ann.post(`${path}/${verb}`),
        { status: 409, body: { code: 'E_DATABASE_BUSY_NOW', error: /being started or stopped now/ } },
        `${verb} during ${during}`
      )
    t.match(await ann.post(`${path}/external-access`, { enabled: true }), { status: 409 })
  }

  const restarted = ann.post(`${path}/restart`)
  await untilEnding(lab, made)
  await isRefused('a restart')
  t.match(await restarted, { status: 200, body: { status: 'running' } })

  t.match(await ann.post(`${path}/backups`), { status: 202 }, 'then it is as free as before')
  t.match(await untilEnded(ann, path, 'backups'), { status: 'succeeded' })
  await untilRunning(ann, path)

  const { id: container } = { id: await containerOf(k, made.id) }
  const seen = async () => await k.service(containerRuntime).tail(container, 100)
  const before = (await seen()).filter(line => line === 'ending').length
  const stopped = ann.post(`${path}/stop`)
  await until(async () => (await seen()).filter(line => line === 'ending').length > before, 'the stop')
  await isRefused('a stop')
  t.match(await stopped, { status: 200, body: { status: 'stopped' } })
  await socket.next(({ event, data }) => event === 'status' && data.status === 'stopped')
  t.match(await ann.post(`${path}/start`), { status: 200, body: { status: 'running' } })
})

test('what a killed platform was starting or stopping is free again after a while', async t => {
  const first = await createTestKernel()
  const slug = `t-${randomUUID().slice(0, 8)}`
  const admin = await first.as.session('ann')
  const { body: project } = await admin.post('/api/projects', { name: slug, slug })
  const { body } = await admin.post(`/api/projects/${project.id}/databases`, { name: 'x', type: 'redis' })
  const path = `/api/projects/${project.id}/databases/${body.id}`
  // As a start leaves it whose process is killed.
  await first.query(
    `update databases.database set task = 'control', hold = gen_random_uuid(), held_until = now() + interval '5 seconds',
      status = 'stopped', status_detail = null where id = '${body.id}'`
  )
  const { state } = first
  await first.stop()
  const k = await createTestKernel({ state })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const upgrade = async () => await ann.post(`${path}/external-access`, { enabled: true })
  t.match(await upgrade(), { status: 409, body: { code: 'E_DATABASE_BUSY_NOW' } }, 'its process may live')
  await until(
    async () => (await upgrade()).body.code === 'E_DATABASE_NOT_RUNNING',
    'the database to be free again',
    90_000
  )
  t.match((await ann.get(path)).body, { status: 'stopped' })
})
