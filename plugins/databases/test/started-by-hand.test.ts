import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { containerOf, runIn, startLab, untilStatus } from './lab.js'

test('what a server that was given up has written since somebody started it is kept', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann, all } = lab
  await k.configure('databases', { ready_seconds: 10 })
  // Its server runs, and is asked at a port on which it does not listen.
  const made = await ann.post(all, { name: 'late', type: 'other', image: 'redis:7', container_port: 81 })
  const path = `${all}/${made.body.id}`
  const redis = async (...words: string[]) => await runIn(k, made.body.id, ['redis-cli', ...words])
  await untilStatus(ann, path, 'failed')
  t.equal((await ann.post(`${path}/start`)).status, 200)
  await untilStatus(ann, path, 'running')
  await redis('set', 'kept', 'yes')
  await redis('save')
  const before = await containerOf(k, made.body.id)
  t.equal((await ann.post(`${path}/reload`)).status, 202)
  const isNew = async (): Promise<boolean> => (await containerOf(k, made.body.id)) !== before
  await until(isNew, 'the new container', 60_000)
  const answer = async () => await redis('get', 'kept').catch(() => undefined)
  t.equal(await until(answer, 'the server of the new container', 120_000), 'yes')
})

test('a start of what ends at once is answered, and its status says how it ended', async t => {
  if (!(await requireDatabaseImages(t))) return
  const { ann, all } = await startLab(t)
  // Its server has no configuration in this image.
  const made = await ann.post(all, { name: 'loop', type: 'other', image: 'nginx:lab', container_port: 80 })
  const path = `${all}/${made.body.id}`
  await untilStatus(ann, path, 'failed')
  for (const action of ['start', 'stop', 'restart', 'stop'])
    t.equal((await ann.post(`${path}/${action}`)).status, 200, action)
})
