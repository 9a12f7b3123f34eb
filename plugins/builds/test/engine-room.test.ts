import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { mebi, openSmallEngine, serving } from '../../deployments/test/small-engine.js'
import { engineKinds, port, settingsOf } from './engine-lab.js'

const floorMib = 200
const cacheMib = 500

test('who has filled the disk with a build cache loses that, and nobody else a container or files', async t => {
  if (!(await requireSecondEngine(t))) return
  const kind = engineKinds['the Docker Engine of this machine']
  const { lab, docker, disk } = await openSmallEngine(t, {
    images: ['busybox:lab', kind.image],
    diskBytes: 1400 * mebi
  })
  const settings = { disk_floor_mib: floorMib, memory_mib: 512, cpus: 0.5 }
  await lab.k.configure('builds', { ...settings, ...settingsOf(kind), memory_mib: 512 })
  const cached = await lab.ofUser('taker', 'cached', {
    Dockerfile: `FROM busybox:lab
RUN --mount=type=cache,target=/kept dd if=/dev/zero of=/kept/file bs=1M count=${cacheMib}
${port}`
  })
  t.match(await cached.deployed(), { status: 'success', error_message: null })
  const volume = docker.getVolume(`busbar-builder-${/projects\/([^/]+)\//.exec(cached.path)?.[1] ?? ''}`)
  t.ok(await volume.inspect())
  await lab.k.configure('builds', settings)
  const freeMib = async (): Promise<number> =>
    await disk().then(({ bavail, bsize }) => (bavail * bsize) / mebi)

  // Near the floor, and with all that the disk has lost since it was seen with room.
  const count = Math.floor((await freeMib()) - 1.5 * floorMib + 40)
  t.ok(count > 64, `${count} MiB are written`)
  const writer = await lab.ofUser(
    'writer',
    'writer',
    serving(`dd if=/dev/zero of=/kept/own bs=1M count=${count}`)
  )
  t.match(await writer.deployed(), { status: 'success', error_message: null })
  const [before] = await writer.containers()
  const isGone = async (): Promise<boolean> =>
    await volume.inspect().then(
      () => false,
      ({ statusCode }) => statusCode === 404
    )
  await until(isGone, 'the cache to go', 90_000)
  await until(async () => (await freeMib()) > 1.5 * floorMib, 'its room to come back')
  t.equal((await writer.read()).status, 'running')
  const [after] = await writer.containers()
  t.equal(after?.Id, before?.Id)
  t.equal(after?.State, 'running')
  const sizeMib = async (): Promise<number> => {
    const written = await docker.getContainer(after?.Id ?? '').exec({
      Cmd: ['du', '-m', '/kept/own'],
      AttachStdout: true,
      Tty: true
    })
    let text = ''
    for await (const chunk of await written.start({ Tty: true })) text += String(chunk)
    return Number.parseInt(text, 10)
  }
  await until(async () => (await sizeMib()) >= count, 'it to have all that it writes', 60_000)
  t.equal((await cached.read()).status, 'running', 'a cache is all that its owner loses')
})
