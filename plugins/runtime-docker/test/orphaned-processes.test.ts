import { execFile, spawn } from 'node:child_process'
import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireSecondEngine, type SecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { lookScript, orphansAmong, readProcesses } from '../host/orphaned-processes.js'
import { clock, startLab } from './lab.js'

const id = 'c0ffee00'.repeat(8)
const other = 'abcdef12'.repeat(8)
const longMs = 60_000

const group = 'busbar1'

const orphansIn = (
  lines: readonly string[],
  { resting = [], onEngine = {} }: { resting?: readonly string[]; onEngine?: Record<string, boolean> }
) =>
  orphansAmong(readProcesses(lines.join('\n')), {
    group,
    resting: new Set(resting),
    onEngine: new Map(Object.entries(onEngine))
  }).map(({ pid }) => pid)

const shim = (pid: number, of: string): string =>
  `${pid}/cmdline:/usr/bin/containerd-shim-runc-v2 -namespace moby -id ${of} -address /run/containerd.sock `

test('of own containers, what the engine has no more is orphaned, and of those that rest; what runs or may be starting is not', t => {
  const lines = [
    `12/cgroup:12:pids:/${group}/aa/${id}`,
    `13/cgroup:0::/../../${group}/aa/docker-${id}.scope`,
    shim(14, id),
    '15/cgroup:0::/user.slice',
    `16/environ:-id ${id} `
  ]
  t.same(orphansIn(lines, {}), [12, 13, 14], 'it is gone')
  t.same(orphansIn(lines, { onEngine: { [id]: false } }), [], 'it may be starting')
  t.same(orphansIn(lines, { onEngine: { [id]: true } }), [])
  t.same(orphansIn(lines, { onEngine: { [id]: false }, resting: [id] }), [12, 13, 14])
  t.same(orphansIn(lines, { onEngine: { [id]: true }, resting: [id] }), [], 'it has been started since')
  t.end()
})

test('processes of others are never orphaned, whatever names they give', t => {
  const lines = [
    `12/cgroup:0::/busbar2/aa/${id}`,
    `13/cgroup:0::/docker/${id}`,
    shim(14, id),
    // In a group of its own making, within a container that runs.
    `15/cgroup:0::/${group}/aa/${other}/${id}`,
    `16/cgroup:0::/${group}/aa/${other}`,
    shim(16, id)
  ]
  t.same(orphansIn(lines, { onEngine: { [other]: true } }), [])
  t.same(
    orphansIn(lines, { onEngine: { [other]: true, [id]: false }, resting: [id] }),
    [12, 13, 14],
    'an id is given once: these are of the container that rests'
  )
  t.end()
})

test('where the engine is in a container itself, what is behind that counts', t => {
  const lines = [`12/cgroup:4:pids:/docker/${other}/${group}/aa/${id}`, `13/cgroup:4:pids:/docker/${other}`]
  t.same(orphansIn(lines, { onEngine: { [id]: true } }), [])
  t.same(orphansIn(lines, {}), [12])
  t.end()
})

test('a process that calls itself by lines of the look adds none to it', async t => {
  const forged = `containerd-shim\\n1/cgroup:0::/${group}/x/${id}\\012 -id ${id} \n2/cgroup:0::/${group}/x/${id}`
  const child = spawn('sleep', ['60'], { argv0: forged, stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await until(async () => (await readFile(`/proc/${child.pid}/cmdline`, 'utf8')).includes('shim'), 'it')
  const { stdout } = await promisify(execFile)('sh', ['-c', lookScript], { maxBuffer: 2 ** 25 })
  const seen = readProcesses(stdout)
  t.equal(seen.holders.get(child.pid ?? 0), id, 'it is seen, as what says so itself')
  for (const pid of [1, 2]) t.notOk(seen.groups.get(pid)?.includes(id))
})

interface Seen {
  readonly pid: number
  readonly parent: number
  readonly group: string
  readonly command: string
}

async function processes(): Promise<readonly Seen[]> {
  const read = async (path: string): Promise<string> => await readFile(path, 'utf8').catch(() => '')
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
  return await Promise.all(
    pids.map(async pid => ({
      pid: Number(pid),
      parent: Number(/^PPid:\s*(\d+)$/m.exec(await read(`/proc/${pid}/status`))?.[1]),
      group: await read(`/proc/${pid}/cgroup`),
      command: (await read(`/proc/${pid}/cmdline`)).replaceAll('\0', ' ')
    }))
  )
}

const runningIn = async (containerId: string): Promise<readonly Seen[]> =>
  (await processes()).filter(({ group }) => group.includes(containerId))

const holderOf = async (containerId: string): Promise<Seen | undefined> =>
  (await processes()).find(
    ({ command }) => command.includes('containerd-shim') && command.includes(`-id ${containerId} -address`)
  )

/** The engine is killed while it starts a container, whose program runs from then on. */
async function killedWhileStarting(t: Test) {
  const engine = await startSecondEngine({ images: ['busybox:lab'] })
  t.teardown(async () => {
    await engine.close()
  })
  const lab = startLab(t, { environment: engine.environment, docker: engine.docker })
  const volume = `busbar-test-${lab.projectId}`
  await lab.runtime.ensureVolume(volume, { projectId: lab.projectId })
  const onVolume = { volumes: [{ volume, path: '/data' }] }
  for (let attempt = 1; ; attempt++) {
    // Not in the network of its project: the engine has a part in making that, and could not be held still below.
    const containerId = await lab.runtime.create(lab.spec('orphan', 'host', onVolume))
    const starting = lab.runtime.start(containerId).catch(() => {})
    await until(async () => await holderOf(containerId), 'something to hold it', longMs)
    // It answers nobody any more; the part of it that makes containers goes on.
    process.kill(await pidOf(engine), 'SIGSTOP')
    const isMade = async (): Promise<boolean> => {
      const holder = await holderOf(containerId)
      return (await runningIn(containerId)).some(({ parent }) => parent === holder?.pid)
    }
    await until(isMade, 'its program to be about to run', longMs)
    await engine.kill()
    await starting
    const gate = join(engine.dataRoot, '..', 'exec', 'runtime-runc', 'moby', containerId, 'exec.fifo')
    const lostAt = clock.now()
    // On a busy machine the engine may have been held too late, and has had it run already.
    const isBegun = await begin(gate)
    if (isBegun) {
      const isRunning = async (): Promise<boolean> =>
        (await runningIn(containerId)).some(({ command }) => command.includes('trap'))
      await until(isRunning, 'its program to run')
    }
    await engine.start()
    if (isBegun) return { ...lab, engine, containerId, lostAt }
    if (attempt === 8) throw new Error('the engine was never held in time')
    await engine.docker.getContainer(containerId).remove({ force: true })
  }
}

/** Lets what waits behind the gate run; false where there is none. */
async function begin(gate: string): Promise<boolean> {
  const opened = await open(gate).catch(() => undefined)
  await opened?.read()
  await opened?.close()
  return opened !== undefined
}

const pidOf = async ({ dataRoot }: SecondEngine): Promise<number> =>
  Number(await readFile(join(dataRoot, '..', 'pid'), 'utf8'))

test('a container whose start was cut off by the death of the engine starts, and its program of before has ended', async t => {
  if (!(await requireSecondEngine(t))) return
  const { runtime, containerId } = await killedWhileStarting(t)
  const before = await runningIn(containerId)
  t.not(before.length, 0, 'it lives')
  t.match(await runtime.inspect(containerId), { status: 'created' }, 'and the engine has forgotten it')
  await runtime.start(containerId)
  t.match(await runtime.inspect(containerId), { status: 'running' })
  const now = new Set((await runningIn(containerId)).map(({ pid }) => pid))
  t.not(now.size, 0)
  t.same(
    before.filter(({ pid }) => now.has(pid)),
    []
  )
})

test('what a killed engine has left of a container that was removed since ends when it is back, and nothing else does', async t => {
  if (!(await requireSecondEngine(t))) return
  const { runtime, engine, containerId, lostAt, spec } = await killedWhileStarting(t)
  await engine.docker.getContainer(containerId).remove({ force: true })
  const other = await runtime.create(spec('other', 'host'))
  await runtime.start(other)
  const serving = await runningIn(other)
  const stranger = startLab(t, { environment: engine.environment, docker: engine.docker })
  const outage = { lostAt, backAt: clock.now() }
  await stranger.runtime.recover(outage)
  t.not((await runningIn(containerId)).length, 0, 'the engine leaves them, as do other installations')
  await runtime.recover(outage)
  await until(async () => (await runningIn(containerId)).length === 0, 'they have ended')
  t.equal(await holderOf(containerId), undefined)
  const pids = (await runningIn(other)).map(({ pid }) => pid)
  t.ok(serving.length > 0 && serving.every(({ pid }) => pids.includes(pid)))
})

test('a container whose start was cut off by the death of the engine takes its program with it when it is removed', async t => {
  if (!(await requireSecondEngine(t))) return
  const { runtime, containerId } = await killedWhileStarting(t)
  t.not((await runningIn(containerId)).length, 0, 'it lives')
  await runtime.remove(containerId)
  t.equal((await runningIn(containerId)).length, 0, 'another one may be made on its volume')
})
