import type { LogBatch, LogLine, OutputLine } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import type { ContainerStats } from 'dockerode'
import { test } from 'tap'
import { readStats } from '../container-stats.js'
import { engineTest, type Lab, sharedLab } from './lab.js'

const newProject = sharedLab()

/** A container that runs `script`, in a shell. */
async function started(lab: Lab, name: string, script: string): Promise<string> {
  const network = await lab.runtime.ensureNetwork({ id: lab.projectId, slug: lab.projectId.slice(0, 8) })
  const id = await lab.runtime.create(
    lab.spec(name, network, { command: ['sh', '-c', script], env: { GIVEN: 'by the spec' } })
  )
  await lab.runtime.start(id)
  return id
}

const stays = 'trap "exit 0" TERM; while true; do sleep 0.1; done'

async function outputOf(lab: Lab, id: string, command: readonly string[], more: object = {}) {
  const lines: OutputLine[] = []
  const exitCode = await lab.runtime.exec(id, command, {
    onLine: line => {
      lines.push(line)
    },
    signal: new AbortController().signal,
    ...more
  })
  return { exitCode, lines }
}

engineTest('a program in a container says its lines by stream, and its exit code', async t => {
  const lab = newProject()
  const id = await started(lab, 'exec', stays)
  const { exitCode, lines } = await outputOf(lab, id, [
    'sh',
    '-c',
    'echo "a b"; echo bad >&2; printf end; exit 3'
  ])
  t.equal(exitCode, 3)
  t.same(
    lines.filter(({ stream }) => stream === 'stdout').map(({ text }) => text),
    ['a b', 'end']
  )
  t.same(
    lines.filter(({ stream }) => stream === 'stderr').map(({ text }) => text),
    ['bad']
  )
})

engineTest('a program gets the variables, the user and the directory that it is given', async t => {
  const lab = newProject()
  const id = await started(lab, 'exec-options', stays)
  const { lines } = await outputOf(lab, id, ['sh', '-c', 'echo "$GIVEN, $OWN, $(id -u):$(id -g), $PWD"'], {
    env: { OWN: 'with = and "quotes"' },
    user: '1234:56',
    directory: '/etc'
  })
  t.equal(lines[0]?.text, 'by the spec, with = and "quotes", 1234:56, /etc')
})

engineTest(
  'a program that is not there is exit code 126 or 127 with the reason; no shell reads the list',
  async t => {
    const lab = newProject()
    const id = await started(lab, 'exec-missing', stays)
    const { exitCode, lines } = await outputOf(lab, id, ['nothing-like-this; true'])
    t.ok([126, 127].includes(exitCode), String(exitCode))
    t.match(lines.map(({ text }) => text).join(' '), /nothing-like-this; true/)
  }
)

engineTest('waiting for a program ends with its signal, and with its container', async t => {
  const lab = newProject()
  const id = await started(lab, 'exec-abort', stays)
  const ending = new AbortController()
  const begun: string[] = []
  const waiting = outputOf(lab, id, ['sh', '-c', 'echo begun; sleep 60'], {
    signal: ending.signal,
    onLine: ({ text }: OutputLine) => begun.push(text)
  })
  await until(() => begun.length > 0, 'the program has begun')
  ending.abort(new Error('enough'))
  await t.rejects(waiting, { message: 'enough' })
  await t.rejects(outputOf(lab, id, ['true'], { signal: ending.signal }), { message: 'enough' })

  const cut: string[] = []
  const killed = outputOf(lab, id, ['sh', '-c', 'echo begun; sleep 60'], {
    onLine: ({ text }: OutputLine) => cut.push(text)
  })
  await until(() => cut.length > 0, 'the program has begun')
  await lab.runtime.stop(id, 0)
  const end = await killed.then(
    ({ exitCode }) => exitCode,
    (error: { code?: string }) => error.code
  )
  t.ok(end === 137 || end === 'E_ENGINE_REFUSED' || end === 'E_CONTAINER_MISSING', String(end))
  await t.rejects(outputOf(lab, id, ['true']), { status: 409, code: 'E_CONTAINER_NOT_RUNNING' })
})

async function all(batches: AsyncIterable<LogBatch>): Promise<LogLine[]> {
  const found: LogLine[] = []
  for await (const { lines } of batches) found.push(...lines)
  return found
}

engineTest('the output of a container is read whole, by its end and from a time on', async t => {
  const lab = newProject()
  const begunAt = new Date()
  const id = await started(
    lab,
    'logs',
    `trap 'printf "h\\303\\251"; exit 0' TERM; echo one; echo two >&2; while true; do sleep 0.1; done`
  )
  await until(async () => (await lab.runtime.tail(id, 10)).length === 2, 'its first lines')
  await lab.runtime.stop(id, 10)
  const { signal } = new AbortController()
  const lines = await all(lab.runtime.logs(id, { signal }))
  t.same(
    lines
      .filter(({ stream }) => stream === 'stdout')
      .map(({ text }) => text)
      .slice(0, 2),
    ['one', 'hé']
  )
  t.ok(lines.some(({ stream, text }) => stream === 'stderr' && text === 'two'))
  for (const { time } of lines) {
    t.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/)
    t.ok(Date.parse(time) >= begunAt.getTime() - 1000 && Date.parse(time) <= Date.now() + 1000)
  }
  t.equal((await all(lab.runtime.logs(id, { tail: 1, signal }))).length, 1)
  t.same(await all(lab.runtime.logs(id, { since: new Date(Date.now() + 60_000), signal })), [])
  await t.rejects(all(lab.runtime.logs('nothing-like-this', { signal })), { code: 'E_CONTAINER_MISSING' })
})

engineTest('output is followed until the container ends, or until its reader stops', async t => {
  const lab = newProject()
  const id = await started(
    lab,
    'follow',
    'trap "echo bye; exit 0" TERM; n=0; while true; do n=$((n+1)); echo $n; sleep 0.1; done'
  )
  const { signal } = new AbortController()
  const seen: string[] = []
  const following = (async () => {
    for await (const { lines } of lab.runtime.logs(id, { follow: true, signal }))
      seen.push(...lines.map(({ text }) => text))
  })()
  await until(() => seen.includes('3'), 'what is written now')
  const ending = new AbortController()
  const other = all(lab.runtime.logs(id, { follow: true, tail: 0, signal: ending.signal }))
  ending.abort()
  t.same(
    (await other).map(({ text }) => text).filter(text => text === '1'),
    []
  )
  await lab.runtime.stop(id, 10)
  await following
  t.same(seen.slice(0, 3), ['1', '2', '3'])
  t.equal(seen.at(-1), 'bye')
})

engineTest(
  'what a container uses grows with what it does, and is not told of one that does not run',
  async t => {
    const lab = newProject()
    const id = await started(lab, 'stats', 'trap "exit 0" TERM; while true; do :; done')
    const first = await lab.runtime.stats(id)
    t.match(first, { memoryBytes: Number, memoryLimitBytes: Number, processes: Number })
    t.ok(first.memoryBytes > 0 && first.memoryBytes < 2 ** 30, String(first.memoryBytes))
    t.ok(first.processes >= 1, String(first.processes))
    const later = await until(async () => {
      const sample = await lab.runtime.stats(id)
      return sample.cpuSeconds > first.cpuSeconds + 0.05 && sample
    }, 'time on the processor')
    t.ok(later.at > first.at)
    await lab.runtime.stop(id, 1)
    await t.rejects(lab.runtime.stats(id), { status: 409, code: 'E_CONTAINER_NOT_RUNNING' })
    await lab.runtime.start(id)
    t.match(await lab.runtime.stats(id), { memoryBytes: Number })
    await lab.runtime.remove(id)
    await t.rejects(lab.runtime.stats(id), { status: 404, code: 'E_CONTAINER_MISSING' })
  }
)

test('a sample is read as engines of either kind of cgroup give it', async t => {
  const sample = (memory: object): ContainerStats =>
    ({
      read: '2026-01-02T03:04:05.678901234Z',
      cpu_stats: { cpu_usage: { total_usage: 2_500_000_000 } },
      memory_stats: memory,
      pids_stats: { current: 7 },
      networks: { eth0: { rx_bytes: 1, tx_bytes: 10 }, eth1: { rx_bytes: 2, tx_bytes: 20 } },
      blkio_stats: {
        io_service_bytes_recursive: [
          { op: 'Read', value: 5 },
          { op: 'read', value: 6 },
          { op: 'write', value: 70 }
        ]
      }
    }) as unknown as ContainerStats
  t.same(readStats(sample({ usage: 1000, limit: 4000, stats: { inactive_file: 300 } })), {
    at: new Date('2026-01-02T03:04:05.678Z'),
    cpuSeconds: 2.5,
    memoryBytes: 700,
    memoryLimitBytes: 4000,
    processes: 7,
    receivedBytes: 3,
    sentBytes: 30,
    readBytes: 11,
    writtenBytes: 70
  })
  const ofV1 = { inactive_file: 20, total_inactive_file: 100 }
  t.equal(
    readStats(sample({ usage: 1000, stats: ofV1 })).memoryBytes,
    900,
    'with what containers within it have, as of version 1'
  )
})
