import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestClient, TestSocket } from 'busbar/sdk/testing'
import { type Benchmark, count, millis, oursAtMost, percent, type Row, ratioAtMost } from './benchmark.js'
import { expect } from './rig/expect.js'
import { type LoadGenerator, startLoadGenerator } from './rig/load.js'
import type { LoadResult } from './rig/load-generator.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { cpuMicros } from './rig/process-usage.js'
import { tickMs } from './rig/streaming-plugin.js'
import { requestsPerToken } from './rig/tokens.js'
import { median, medianRatio } from './statistics.js'

const connections = 32
const rounds = 5
const togglesPerRound = 10
const togglesForHeap = 100
const pauseMs = 50
/** More than a window can take; it is stopped before. */
const amount = connections * requestsPerToken * 5
const openConnections = 8

interface Window extends LoadResult {
  readonly stallMs: number
}
interface Plugin {
  readonly id: string
  readonly routes: number
  readonly essential: boolean
  readonly dependents: readonly string[]
  readonly state: string
}

/** Goal 5: what others notice while a plugin is turned off and on. */
export const toggles: Benchmark = {
  name: 'toggles',
  title: `Goal 5: ${rounds * togglesPerRound} toggles (off and on) under load, ${connections} connections; the reference is the same load without toggles`,
  async run() {
    const platform = await openPlatform()
    const generator = await startLoadGenerator()
    try {
      return await measure(platform, generator)
    } finally {
      await generator.stop()
      await platform.close()
    }
  }
}

async function measure(platform: Platform, generator: LoadGenerator): Promise<Row[]> {
  const { process, admin } = platform
  const { id, routes } = await choosePlugin(admin)
  const streams = await Streams.open(platform)
  const toggle = async (): Promise<number> => await toggleOnce(admin, id)

  await window(platform, generator, async () => {
    await sleep(1_000)
    await toggle()
  })
  const control: Window[] = []
  const toggling: Window[] = []
  for (let round = 0; round < rounds; round++) {
    control.push(
      await window(platform, generator, async () => {
        await sleep(1_500)
      })
    )
    toggling.push(
      await window(platform, generator, async () => {
        for (let n = 0; n < togglesPerRound; n++) await toggle()
      })
    )
  }
  const broken = await streams.close()

  await sleep(1_000)
  const starts: number[] = []
  const before = await process.ask('heap')
  const cpuBefore = cpuMicros(process.pid)
  while (starts.length < togglesForHeap) starts.push(await toggle())
  const cpuOfToggle = (cpuMicros(process.pid) - cpuBefore) / togglesForHeap / 1000
  const after = await process.ask('heap')
  const instances = await process.ask('instances')

  const each = (windows: readonly Window[], key: 'p99Ms' | 'stallMs'): number[] =>
    windows.map(window => window[key])
  const compare = (measure: string, key: 'p99Ms' | 'stallMs'): Row => ({
    measure,
    ours: millis(median(each(toggling, key))),
    reference: millis(median(each(control, key))),
    ratio: medianRatio(each(toggling, key), each(control, key))
  })
  const sum = (windows: readonly Window[], key: 'requests' | 'failed'): number =>
    windows.reduce((total, one) => total + one[key], 0)
  return [
    {
      measure: `failed requests of ${sum(toggling, 'requests')} while "${id}" (${routes} routes) toggles`,
      ours: count(sum(toggling, 'failed')),
      reference: count(sum(control, 'failed')),
      goal: oursAtMost(0)
    },
    { ...compare('p99', 'p99Ms'), goal: ratioAtMost(3) },
    { ...compare('longest stall of the event loop in a round', 'stallMs'), goal: oursAtMost(100) },
    {
      measure: 'turning it on, the whole request, no load',
      ours: millis(median(starts)),
      goal: oursAtMost(50)
    },
    { measure: 'turning it off and on, CPU, no load', ours: millis(cpuOfToggle) },
    {
      measure: `instances in memory for each of ${instances.running} running`,
      ours: count(instances.live / instances.running),
      goal: oursAtMost(1)
    },
    {
      measure: `growth of the heap over ${togglesForHeap} toggles`,
      ours: percent((100 * (after - before)) / before),
      goal: oursAtMost(10)
    },
    { measure: `broken of ${openConnections} WebSockets`, ours: count(broken.sockets), goal: oursAtMost(0) },
    {
      measure: `broken of ${openConnections} event streams`,
      ours: count(broken.streams),
      goal: oursAtMost(0)
    }
  ]
}

/** The largest plugin that can be turned off alone. */
async function choosePlugin(admin: TestClient): Promise<Plugin> {
  const { items } = expect(await admin.get('/api/plugins'), 200) as { items: Plugin[] }
  const [largest] = items
    .filter(
      ({ id, essential, dependents, state }) =>
        id !== 'bench' && !essential && dependents.length === 0 && state === 'running'
    )
    .sort((a, b) => b.routes - a.routes)
  if (largest === undefined) throw new Error('no plugin can be turned off')
  return largest
}

/** How long turning it on took. */
async function toggleOnce(admin: TestClient, id: string): Promise<number> {
  expect(await admin.post(`/api/plugins/${id}/disable`), 200)
  await sleep(pauseMs)
  const startedAt = performance.now()
  expect(await admin.post(`/api/plugins/${id}/enable`), 200)
  const took = performance.now() - startedAt
  await sleep(pauseMs)
  return took
}

/** Loads a route of another plugin for as long as `work` takes. */
async function window(
  { process, projectId, tokens, url }: Platform,
  generator: LoadGenerator,
  work: () => Promise<void>
): Promise<Window> {
  const taken = await tokens.take(amount, connections)
  await process.ask('watchLoop')
  const load = generator.ask('load', {
    url: `${url}/api/projects/${projectId}`,
    connections,
    amount,
    tokens: taken
  })
  await work()
  await generator.ask('stop')
  return { ...(await load), stallMs: await process.ask('longestStallMs') }
}

/** WebSockets and event streams that are open all the time. One is broken when it ends or falls silent. */
class Streams {
  #ended = 0

  private constructor(
    readonly sockets: readonly TestSocket[],
    readonly responses: readonly IncomingMessage[]
  ) {
    for (const response of responses)
      response.once('close', () => {
        this.#ended++
      })
  }

  static async open({ url, admin }: Platform): Promise<Streams> {
    const sockets: TestSocket[] = []
    const responses: IncomingMessage[] = []
    for (let n = 0; n < openConnections; n++) {
      const socket = await TestSocket.open(admin)
      socket.subscribe('bench')
      sockets.push(socket)
      const call = request(`${url}/api/bench/ticks`, { headers: admin.credential, agent: false }).end()
      const [response] = (await once(call, 'response')) as [IncomingMessage]
      responses.push(response.resume())
    }
    return new Streams(sockets, responses)
  }

  /** How many are broken; closes all. */
  async close(): Promise<{ sockets: number; streams: number }> {
    for (const socket of this.sockets) socket.frames.length = 0
    let heard = 0
    for (const response of this.responses)
      response.once('data', () => {
        heard++
      })
    await sleep(10 * tickMs)
    const streams = Math.max(this.#ended, openConnections - heard)
    const sockets = this.sockets.filter(
      ({ frames, closeCode }) => closeCode !== undefined || frames.length === 0
    ).length
    for (const response of this.responses) response.destroy()
    await Promise.all(
      this.sockets.map(async socket => {
        await socket.close()
      })
    )
    return { sockets, streams }
  }
}
