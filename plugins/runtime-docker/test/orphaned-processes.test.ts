import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireSecondEngine, type SecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { readProcesses } from '../host/orphaned-processes.js'
import { clock, startLab } from './lab.js'

const id = 'c0ffee00'.repeat(8)
const other = 'abcdef12'.repeat(8)
const longMs = 60_000

test('processes are told by the outermost container they are in, and what holds one by its arguments', t => {
  const rows = readProcesses(
    [
      `12/cgroup:12:pids:/busbar1/aa/${id}`,
      `13/cgroup:0::/busbar1.slice/busbar1-aa.slice/docker-${id}.scope/${other}`,
      `14/cmdline:/usr/bin/containerd-shim-runc-v2 -namespace moby -id ${id} -address /run/containerd.sock `,
      '15/cmdline:sh -c grep containerd-shim ',
      '16/cgroup:0::/user.slice',
      `17/environ:-id ${id} `
    ].join('\n')
  )
  t.same(
    rows.map(({ pid, containerId }) => [pid, containerId]),
    [
      [12, id],
      [13, id],
      [14, id]
    ]
  )
  t.end()
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
  const { runtime } = lab
  // Not in the network of its project: the engine has a part in making that, and could not be held still below.
  const containerId = await runtime.create(lab.spec('orphan', 'host'))
  const starting = runtime.start(containerId).catch(() => {})
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
  const gate = await open(
    join(engine.dataRoot, '..', 'exec', 'runtime-runc', 'moby', containerId, 'exec.fifo')
  )
  await gate.read()
  await gate.close()
  const hasBegun = async (): Promise<boolean> =>
    (await runningIn(containerId)).some(({ command }) => command.includes('trap'))
  await until(hasBegun, 'its program to run')
  const lostAt = clock.now()
  await engine.start()
  return { ...lab, engine, containerId, lostAt }
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
