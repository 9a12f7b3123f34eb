import { containerRuntime } from 'busbar/api/containers'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { containerOf, createDatabase, startLab, untilRunning, untilStatus } from './lab.js'

test('a database is not started beside a server that an upgrade has left with its volume', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann, projectId } = lab
  const { id, path, slug } = await createDatabase(lab, {
    type: 'other',
    image: 'redis:7',
    container_port: 6379
  })
  const [row] = await k.query<{ volume: string; image_name: string }>(
    'select volume, image_name from databases.database'
  )
  const runtime = k.service(containerRuntime)
  const names = async () => (await runtime.list({ databaseId: id })).map(({ name }) => name).sort()
  /** As a platform leaves it that is killed while it copies, and restored from an archive of before. */
  const leaveSource = async (): Promise<void> => {
    const left = await runtime.create({
      name: `${slug}-source`,
      image: row?.image_name ?? '',
      owner: { projectId, databaseId: id },
      network: await runtime.ensureBuildNetwork(projectId),
      env: {},
      cpuLimit: 0,
      memoryLimit: 0,
      caps: 'standard',
      readonlyRootfs: false,
      volumes: [{ volume: row?.volume ?? '', path: '/data' }]
    })
    await runtime.start(left)
  }
  for (const [verb, before] of [
    ['start', 'stopped'],
    ['restart', 'running'],
    ['reload', 'stopped']
  ] as const) {
    if (before === 'stopped') {
      await ann.post(`${path}/stop`)
      await untilStatus(ann, path, 'stopped')
    }
    await leaveSource()
    t.same(await names(), [slug, `${slug}-source`], verb)
    t.ok([200, 202].includes((await ann.post(`${path}/${verb}`)).status), verb)
    await untilRunning(ann, path)
    t.same(await names(), [slug], `${verb} has taken it away`)
    t.equal((await runtime.inspect(await containerOf(k, id)))?.status, 'running')
  }
})
