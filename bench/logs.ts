import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Benchmark,
  count,
  kibibytes,
  micros,
  millis,
  oursAtMost,
  type Row,
  ratioAtMost
} from './benchmark.js'
import { docker } from './rig/commands.js'
import { removeProject } from './rig/deployer.js'
import { expect } from './rig/expect.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { cpuMicros } from './rig/process-usage.js'
import { median, medianRatio } from './statistics.js'

const lines = 100_000
const rounds = 5
const limitMs = 120_000
const slowReaders = 40

/** Waits to be told, and writes all of them as fast as it can. */
const script = `while true; do while [ ! -e /tmp/go ]; do sleep 0.02; done; rm /tmp/go; i=0; while [ $i -lt ${lines} ]; do echo "line $i ${'x'.repeat(80)}"; i=$((i+1)); done; done`

/** Goal 4: what a container writes in a burst, from there to a reader. */
export const logs: Benchmark = {
  name: 'logs',
  title: `Goal 4: ${lines} lines of 90 bytes in a burst, ${rounds} rounds; the reference is docker logs -f`,
  async run() {
    const platform = await openPlatform({ admins: 1 })
    const reference = `bench-logs-${randomBytes(3).toString('hex')}`
    try {
      await docker('run', '--detach', '--name', reference, 'busybox:lab', 'sh', '-c', script)
      return await measure(platform, reference)
    } finally {
      await docker('rm', '--force', reference).catch(() => {})
      await removeProject(platform)
      await platform.close()
    }
  }
}

async function measure(platform: Platform, reference: string): Promise<Row[]> {
  const { path, container } = await deployed(platform)
  const ours: number[] = []
  const theirs: number[] = []
  const cpu: number[] = []
  let wrong = 0
  const stream = new LineCounter('\n\n', ' line ')
  const answer = await platform.admin.open(`${path}/logs?follow=true`)
  answer.on('data', (chunk: Buffer) => stream.read(chunk))
  for (let round = 0; round < rounds; round++) {
    const before = cpuMicros(platform.process.pid)
    ours.push(await timed(container, stream))
    cpu.push((cpuMicros(platform.process.pid) - before) / lines)
    wrong += stream.wrong
    const { counter, stop } = await followed(reference)
    theirs.push(await timed(reference, counter))
    await stop()
  }
  const held = await heldByReaders(platform, path)
  answer.destroy()
  return [
    {
      measure: 'from the first line written to the last at the reader',
      ours: millis(median(ours)),
      reference: millis(median(theirs)),
      ratio: medianRatio(ours, theirs),
      goal: ratioAtMost(1 / 0.95)
    },
    {
      measure: 'CPU of the platform for a line, with keeping it',
      ours: micros(median(cpu)),
      goal: oursAtMost(6)
    },
    { measure: 'lines lost, twice or out of order', ours: count(wrong), goal: oursAtMost(0) },
    { measure: 'memory of a reader that does not read', ours: kibibytes(held), goal: oursAtMost(64) }
  ]
}

async function deployed({ admin, projectId }: Platform): Promise<{ path: string; container: string }> {
  const all = `/api/projects/${projectId}/applications`
  const { id } = expect(
    await admin.post(all, {
      name: 'Loud',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab',
      start_command: `sh -c '${script}'`
    }),
    201
  ) as { id: string }
  const path = `${all}/${id}`
  expect(await admin.put(`${path}/health-check`, { type: 'none' }), 200)
  expect(await admin.post(`${path}/deploy`), 202)
  for (const end = performance.now() + limitMs; ; ) {
    const [deployment] = expect(await admin.get(`${path}/deployments`), 200) as Array<{ status: string }>
    if (deployment?.status === 'success') break
    if (deployment?.status === 'failed' || performance.now() > end)
      throw new Error(JSON.stringify(deployment))
    await sleep(200)
  }
  return { path, container: await docker('ps', '--quiet', '--filter', `label=application-id=${id}`) }
}

/** From the word to write until as many lines have come. */
async function timed(container: string, counter: LineCounter): Promise<number> {
  counter.begin()
  await docker('exec', container, 'touch', '/tmp/go')
  const end = performance.now() + limitMs
  while (counter.count < lines) {
    if (performance.now() > end) throw new Error(`${counter.count} lines have come`)
    await sleep(5)
  }
  return counter.tookMs
}

async function followed(container: string): Promise<{ counter: LineCounter; stop: () => Promise<void> }> {
  const counter = new LineCounter('\n', 'line ')
  const child: ChildProcess = spawn('docker', ['logs', '--follow', '--tail', '0', container], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  child.stdout?.on('data', (chunk: Buffer) => counter.read(chunk))
  await sleep(500)
  return {
    counter,
    stop: async () => {
      const exited = once(child, 'exit')
      child.kill()
      await exited
    }
  }
}

/**
 * Lines as they come: from the first to the last, and whether they are in order. It takes as little of the processors as it can, which
 * what is measured needs, and the same for both: one look at each line.
 */
class LineCounter {
  count = 0
  wrong = 0
  tookMs = 0
  #beganAt: number | undefined
  #rest = ''

  constructor(
    private readonly end: string,
    /** What stands before its number. */
    private readonly before: string
  ) {}

  begin(): void {
    this.count = 0
    this.wrong = 0
    this.#beganAt = undefined
  }

  read(chunk: Buffer): void {
    this.#beganAt ??= performance.now()
    const parts = (this.#rest + chunk.toString('latin1')).split(this.end)
    this.#rest = parts.pop() ?? ''
    for (const part of parts) {
      const at = part.indexOf(this.before)
      if (at < 0) continue
      if (Number.parseInt(part.slice(at + this.before.length), 10) !== this.count) this.wrong++
      this.count++
    }
    this.tookMs = performance.now() - this.#beganAt
  }
}

/** Many ask for everything and read nothing of it; KiB for each. */
async function heldByReaders({ admin, process }: Platform, path: string): Promise<number> {
  const before = await process.ask('memory')
  const readers: IncomingMessage[] = []
  for (let n = 0; n < slowReaders; n++) {
    const answer = await admin.open(`${path}/logs?follow=true`)
    answer.pause()
    readers.push(answer)
  }
  await sleep(3000)
  const held = ((await process.ask('memory')) - before) / 1024 / slowReaders
  for (const reader of readers) reader.destroy()
  return held
}
