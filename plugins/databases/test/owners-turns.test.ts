import { randomUUID } from 'node:crypto'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { startLab, untilRunning } from './lab.js'

/** As many as there are workers for jobs that take long, in all. */
const workers = 12

test('servers of one owner that never answer keep nobody else waiting', async t => {
  if (!(await requireDatabaseImages(t))) return
  const { k, ann, all } = await startLab(t)
  await k.configure('databases', { ready_seconds: 3600 })
  const dead = { name: 'dead', type: 'other', image: 'redis:7', container_port: 81 }
  const paths: string[] = []
  while (paths.length < workers) paths.push(`${all}/${(await ann.post(all, dead)).body.id}`)
  const ben = await k.as.session('ben')
  const { body: project } = await ben.post('/api/projects', {
    name: 'b',
    slug: `b-${randomUUID().slice(0, 8)}`
  })
  const path = `/api/projects/${project.id}/databases`
  const { body } = await ben.post(path, { name: 'alive', type: 'redis' })
  await untilRunning(ben, `${path}/${body.id}`)
  // Each that ends lets another one begin.
  for (const one of paths) t.equal((await ann.delete(one)).status, 200)
  const left = async () => await k.query("select id from databases.database where name = 'dead'")
  await until(async () => (await left()).length === 0, 'the servers that never answer to be gone', 120_000)
})
