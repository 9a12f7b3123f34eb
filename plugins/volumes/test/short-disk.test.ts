import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { fillDisk, mebi } from '../../databases/test/engine-lab.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { sourceOf, sourceOptions, stored, work } from './source-lab.js'
import { volumeApplication } from './volume-lab.js'

const start =
  'echo kept > /data/file; dd if=/dev/urandom of=/data/large bs=1M count=20; mkdir -p /tmp/www; echo up > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www'

test('a volume is restored only as long as the disk of the engine has room for others', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'], diskBytes: 700 * mebi })
  t.teardown(() => engine.close())
  const lab = await openLab({ ...sourceOptions, environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  await lab.k.configure('builds', { disk_floor_mib: 128 })
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web', { start })
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  const source = sourceOf()
  const { free } = await source.space(id)
  t.ok(free !== null && free > 0 && free < 700 * mebi, 'what is free above the floor is known')
  const dump = await source.dump(id, { databases: [], quiesce: false }, work())
  const tar = await buffer(dump.content)
  const container = engine.docker.getContainer((await admin.get(web.path)).body.slug)
  const { StartedAt: startedAt } = (await container.inspect()).State
  const spares = async (): Promise<string[]> =>
    ((await engine.docker.listVolumes()).Volumes ?? [])
      .map(({ Name }) => Name)
      .filter(name => /^busbar-(?:spare|drill)-/.test(name))

  const of = { id, projectId: lab.projectId, name: 'data', slug: 's', engine: 'volume', version: '' }
  for (const [what, begin] of [
    [
      'a restore',
      async (content: Readable): Promise<unknown> =>
        await source.restore(id, { ...stored(tar), content }, work())
    ],
    [
      'a drill',
      async (content: Readable): Promise<unknown> =>
        await source.check(of, { ...stored(tar), content }, work())
    ]
  ] as const) {
    let free = async (): Promise<void> => {}
    const content = Readable.from(
      (async function* () {
        yield tar.subarray(0, 5 * mebi)
        free = await fillDisk(engine, 100 * mebi)
        // The rest comes when there is room: somebody has to end it.
        await new Promise(() => {})
      })()
    )
    await t.rejects(async () => void (await begin(content)), /the disk of the engine runs short/, what)
    t.match(await source.space(id), { free: 0 })
    await free()
    await source.settle(id, 'restore', work())
  }
  await until(async () => (await spares()).length === 0, 'nothing is left behind', 60_000)
  t.match((await container.inspect()).State, { Running: true, StartedAt: startedAt }, 'it was never stopped')
  await source.restore(id, stored(tar), work())
  await source.settle(id, 'restore', work())
  await until(async () => (await admin.get(web.path)).body.status === 'running', 'it runs')
})
