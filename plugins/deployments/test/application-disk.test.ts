import { statfs } from 'node:fs/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { openLab } from './deploy-lab.js'

const mebi = 2 ** 20

/** Serves for a while, and then writes `volumeMib` into a volume of its image and `ownMib` into its own file system. */
const writer = (volumeMib: number, ownMib: number) => {
  const write = (path: string, mib: number): string => `dd if=/dev/urandom of=${path} bs=1M count=${mib}`
  return {
    Dockerfile: `FROM busybox:lab
RUN mkdir /kept
VOLUME /kept
CMD ["sh", "-c", "(sleep 4; ${write('/kept/file', volumeMib)}; ${write('/own', ownMib)}) & exec httpd -f -p 8080"]
`
  }
}

test('an application that writes more than is allowed is stopped, and its deployment says why', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  await lab.k.configure('deployments', { container_disk_mib: 96 })
  const admin = await lab.k.as.session()
  const small = await lab.application('small', writer(30, 30))
  const large = await lab.application('large', writer(60, 60))
  for (const { path } of [small, large])
    t.equal((await admin.put(`${path}/runtime`, { readonly_rootfs: false })).status, 200)
  t.match(await small.deployed(), { status: 'success', error_message: null })
  const { id, status } = await large.deployed()
  t.equal(status, 'success')
  await until(async () => (await large.read()).status === 'stopped', 'it to be stopped', 90_000)
  const path = `${large.path}/deployments/${id as string}`
  const lines = async (): Promise<string> => JSON.stringify((await admin.get(path)).body.build_logs)
  await until(async () => /It was stopped/.test(await lines()), 'its log to say why')
  t.match(await lines(), /has written 1[12]\d MiB .* and 96 MiB are allowed/)
  t.match((await admin.get(`${large.path}/health`)).body, { status: 'failing', message: /It was stopped/ })
  t.equal((await small.read()).status, 'running', 'one that keeps to the limit runs on')
  t.match(await large.deployed(), { status: 'success' }, 'deployed again, it begins with nothing written')
  t.equal((await large.read()).status, 'running')
})

test('an application that takes the last of the disk loses what it has written, and no other does', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'], diskBytes: 560 * mebi })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  await lab.k.configure('builds', { disk_floor_mib: 128, memory_mib: 512, cpus: 0.5 })
  const free = async (): Promise<number> =>
    await statfs(engine.dataRoot).then(({ bavail, bsize }) => bavail * bsize)
  const other = await lab.otherProject('other', writer(30, 0))
  t.match(await other.deployed(), { status: 'success', error_message: null })
  const taker = await lab.application('taker', writer(2000, 0))
  const { id } = await taker.deployed()
  await until(async () => (await taker.containers()).length === 0, 'its container to be gone', 60_000)
  await until(async () => (await free()) > 200 * mebi, 'the disk to have room again')
  await until(async () => (await taker.read()).status === 'stopped', 'its status to say so')
  const { body } = await (await lab.k.as.session()).get(`${taker.path}/deployments/${id as string}`)
  t.match(JSON.stringify(body), /what it had written was removed/)
  t.equal((await other.read()).status, 'running')
  t.equal((await other.containers()).length, 1)
})

/**
 * Holds `mib` in a file without a name, which process after process hands on.
 */
const hider = (mib: number) => ({
  Dockerfile: `FROM busybox:lab
RUN mkdir /kept
VOLUME /kept
COPY hide.sh /hide.sh
CMD ["sh", "-c", "sh /hide.sh & exec httpd -f -p 8080"]
`,
  'hide.sh': `sleep 4
exec 3>/kept/file && rm /kept/file
dd if=/dev/zero bs=1M count=${mib} >&3
hop() { hop & exit 0; }
hop & hop & hop
`
})

test('an application that hides what it takes of the disk loses it, and no other one its files', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'], diskBytes: 560 * mebi })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  await lab.k.configure('builds', { disk_floor_mib: 128, memory_mib: 512, cpus: 0.5 })
  const free = async (): Promise<number> =>
    await statfs(engine.dataRoot).then(({ bavail, bsize }) => bavail * bsize)
  const other = await lab.ofUser('member', 'other', writer(140, 0))
  t.match(await other.deployed(), { status: 'success', error_message: null })
  const [before] = await other.containers()
  const empty = await free()
  await until(async () => (await free()) < empty - 130 * mebi, 'the other one to have its files', 30_000)

  const hiding = await lab.ofUser('stranger', 'hiding', hider(340))
  const { id } = await hiding.deployed()
  const admin = await lab.k.as.session()
  const lines = async (): Promise<string> =>
    JSON.stringify((await admin.get(`${hiding.path}/deployments/${id as string}`)).body.build_logs)
  await until(async () => /It was (?:stopped|restarted)/.test(await lines()), 'it to be found', 120_000)
  t.match(await lines(), /open without a name/)
  const [after] = await other.containers()
  t.equal(after?.Id, before?.Id)
  t.equal((await other.read()).status, 'running')
})
