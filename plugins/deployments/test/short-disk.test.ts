import { randomBytes } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { pack } from 'tar-stream'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { type LabApplication, openLab } from './deploy-lab.js'

const mebi = 2 ** 20
const baseMib = 120

test('what ended builds of others have needed does not keep a build from a short disk', async t => {
  if (!(await requireSecondEngine(t)) || !(await requireDockerRegistry(t))) return
  // While an image is taken in, its archive is on the disk as well: two bases do not fit beside the floor.
  const engine = await startSecondEngine({ images: ['busybox:lab'], diskBytes: 560 * mebi })
  t.teardown(() => engine.close())
  const { docker } = engine
  const lab = await openLab({ environment: engine.environment, docker })
  t.teardown(() => lab.close())
  await lab.k.configure('builds', {
    disk_floor_mib: 200,
    memory_mib: 512,
    cpus: 0.5,
    concurrent: 2
  })
  const registry = await startDockerRegistry(t)
  const architecture = (await docker.version()).Arch
  const makeBase = async (name: string): Promise<string> => {
    const tar = pack()
    const packed = buffer(tar)
    tar.entry({ name: `large-${name}` }, randomBytes(baseMib * mebi))
    tar.finalize()
    await registry.push(`team/${name}`, '1', { architecture, layer: await packed, command: ['/large'] })
    return `${registry.host}/team/${name}:1`
  }
  const [first, second, third] = [await makeBase('first'), await makeBase('second'), await makeBase('third')]
  const upon = (base: string, ...steps: string[]) => ({
    Dockerfile: `FROM ${base}\nCOPY --from=busybox:lab / /\n${steps.map(step => `${step}\n`).join('')}CMD ["httpd", "-f", "-p", "8080"]\n`
  })
  const free = async (): Promise<number> =>
    await statfs(engine.dataRoot).then(({ bavail, bsize }) => bavail * bsize)
  /** What it runs with is in the way as long as it exists. */
  const remove = async ({ path }: LabApplication): Promise<void> => {
    const admin = await lab.k.as.session()
    if ((await admin.delete(path)).status >= 300) throw new Error(`${path} was not deleted`)
    await until(async () => (await admin.get(path)).status === 404, 'it to be gone')
  }
  const failing = await lab.application('failing', upon(first, 'RUN false'))
  const victim = await lab.otherProject('victim', upon(second))
  const empty = await free()
  t.comment(`${Math.round(empty / mebi)} MiB are free`)

  await t.test('the base of a build that has just failed makes room for that of another one', async t => {
    t.match(await failing.deployed(), { status: 'failed', error_message: /false ended with exit code 1/ })
    t.ok((await free()) < empty - 100 * mebi, 'it stays as a cache while there is room')
    t.match(await victim.deployed(), { status: 'success', error_message: null })
    await remove(victim)
  })

  await t.test('that of a build that was cancelled, and of stages of one that succeeded', async t => {
    await failing.push({
      Dockerfile: `FROM ${first} AS large\nCOPY --from=busybox:lab / /\nRUN touch /made\nFROM busybox:lab\nCOPY --from=large /made /made\nCMD ["httpd", "-f", "-p", "8080"]\n`
    })
    t.match(await failing.deployed(), { status: 'success', error_message: null })
    await failing.push(upon(third, 'RUN sleep 100'))
    const { id } = await failing.deploy()
    const step = async () =>
      (await docker.listContainers()).some(({ Command }) => Command.includes('sleep 100'))
    await until(step, 'the build to be at its step', 120_000)
    t.ok((await free()) < empty - 100 * mebi)
    const admin = await lab.k.as.session()
    t.ok((await admin.post(`${failing.path}/deployments/${id as string}/cancel`)).status < 300)
    t.match(await failing.ended(id), { status: 'failed', error_message: 'cancelled' })
    const next = await lab.otherProject('next', upon(second))
    t.match(await next.deployed(), { status: 'success', error_message: null })
    await remove(next)
  })

  await t.test('that was built for a deployment that failed', async t => {
    await failing.push({
      Dockerfile: 'FROM busybox:lab\nRUN dd if=/dev/urandom of=/large bs=1M count=80\nCMD ["false"]\n'
    })
    t.match(await failing.deployed(), { status: 'failed', error_message: /exit/ })
    const kept = async () =>
      (await docker.listImages()).filter(({ RepoTags }) =>
        RepoTags?.some(tag => tag.startsWith(failing.slug))
      )
    const last = await lab.otherProject('last', upon(third))
    t.match(await last.deployed(), { status: 'success', error_message: null })
    t.equal((await kept()).length, 1, 'that which serves stays')
  })
})
