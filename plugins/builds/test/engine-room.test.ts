import { statfs } from 'node:fs/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { mebi, openSmallEngine, serving } from '../../deployments/test/small-engine.js'
import { engineKinds, port, settingsOf } from './engine-lab.js'

const floorMib = 200
const cacheMib = 500

test('an application that brings the disk near its floor stays, and the cache of a build engine goes', async t => {
  if (!(await requireSecondEngine(t))) return
  const kind = engineKinds['the Docker Engine of this machine']
  const small = await openSmallEngine(t, {
    images: ['busybox:lab', kind.image],
    diskBytes: 1400 * mebi
  })
  const { lab, docker } = small
  const settings = { disk_floor_mib: floorMib, memory_mib: 512, cpus: 0.5 }
  await lab.k.configure('builds', { ...settings, ...settingsOf(kind), memory_mib: 512 })
  const cached = await lab.application('cached', {
    Dockerfile: `FROM busybox:lab
RUN --mount=type=cache,target=/kept dd if=/dev/zero of=/kept/file bs=1M count=${cacheMib}
${port}`
  })
  t.match(await cached.deployed(), { status: 'success', error_message: null })
  const volume = `busbar-builder-${lab.projectId}`
  t.ok(await docker.getVolume(volume).inspect())
  await lab.k.configure('builds', settings)
  const free = async (): Promise<number> => {
    const { bavail, bsize } = await statfs((await docker.info()).DockerRootDir as string)
    return (bavail * bsize) / mebi
  }
  const count = Math.floor((await free()) - 1.5 * floorMib + 40)
  t.ok(count > 64, `${count} MiB are written`)
  const writer = await lab.otherProject('writer', serving(`dd if=/dev/zero of=/own bs=1M count=${count}`))
  await small.makeWritable(writer)
  t.match(await writer.deployed(), { status: 'success', error_message: null })
  await until(
    async () =>
      await docker
        .getVolume(volume)
        .inspect()
        .then(
          () => false,
          () => true
        ),
    'the cache to go',
    60_000
  )
  await until(async () => (await free()) > 1.5 * floorMib, 'its room to come back')
  t.equal((await writer.read()).status, 'running')
  const [container] = (await docker.listContainers({ all: true })).filter(({ Names }) =>
    Names.some(name => name.includes('writer'))
  )
  t.equal(container?.State, 'running')
})
