import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApplicationTargets, ProxyRoute, RoutingTable } from 'busbar/api/domains'
import { settingsFrom } from 'busbar/sdk/testing'
import { systemClock } from '../core/clock/clock.js'
import { createExec } from '../core/exec/exec.js'
import { createLog } from '../core/log/log.js'
import { createRedactor } from '../core/log/redactor.js'
import { openCaddy, type RunningCaddy } from '../plugins/proxy-caddy/open-caddy.js'
import { settings } from '../plugins/proxy-caddy/settings.js'
import { type Benchmark, count, micros, millis, oursAtMost, type Row, ratioAtMost } from './benchmark.js'
import { Child } from './rig/child.js'
import { freePort } from './rig/free-port.js'
import { removeFolder, temporaryFolder } from './rig/leftovers.js'
import { type LoadGenerator, startLoadGenerator } from './rig/load.js'
import type { VersionReady } from './rig/proxied-version.js'
import { ProxiedVisitors } from './rig/proxied-visitors.js'
import { visit } from './rig/visit.js'
import { median, medianRatio } from './statistics.js'

const requests = 100_000
const switches = 20
const rounds = 7
const requestsOfRound = 3000
const connections = 20
const manyRoutes = 1000
const hostname = 'www.example.com'

const log = createLog({ level: 'silent', format: 'json', redactor: createRedactor() })

interface Proxy extends RunningCaddy {
  readonly port: number
}

/** What Caddy does to requests while applications are deployed, and how soon it serves a change. It needs the program `caddy`. */
export const proxy: Benchmark = {
  name: 'proxy',
  title: `Caddy: ${requests} requests over ${switches} deploys, ${rounds} rounds of ${requestsOfRound}, ${manyRoutes} hostnames`,
  async run() {
    const directory = await temporaryFolder()
    const exec = createExec({ log })
    const open = async (name: string, accessLog: boolean): Promise<Proxy> =>
      await openProxy(join(directory, name), exec, accessLog)
    const versions = await Promise.all(['a', 'b'].map(startVersion))
    const generator = await startLoadGenerator()
    try {
      const noted = await open('noted', true)
      try {
        const targets = versions.map(({ ready }, index) => targetsOf(ready.port, String(index)))
        const silent = await open('silent', false)
        try {
          return [
            ...(await throughSwitches(noted, targets, generator)),
            await tailOfSwitches(noted, targets, generator),
            await changeAmongMany(noted),
            await withNotes(noted, silent, targets, generator)
          ]
        } finally {
          await close(silent)
        }
      } finally {
        await close(noted)
      }
    } finally {
      await generator.stop()
      await Promise.all(versions.map(async version => await version.stop()))
      await exec.close()
      await removeFolder(directory)
    }
  }
}

const startVersion = async (name: string): Promise<Child<VersionReady, Record<never, never>>> =>
  await Child.start(new URL('./rig/proxied-version.js', import.meta.url), { args: [name] })

async function openProxy(
  directory: string,
  exec: ReturnType<typeof createExec>,
  accessLog: boolean
): Promise<Proxy> {
  await mkdir(directory, { recursive: true })
  const [http, https] = await Promise.all([freePort(), freePort()])
  const given = settingsFrom(settings, {
    PATH: process.env.PATH ?? '',
    BUSBAR_CADDY_BIND: '127.0.0.1',
    BUSBAR_HTTP_PORT: String(http),
    BUSBAR_HTTPS_PORT: String(https),
    BUSBAR_CADDY_ACCESS_LOG: String(accessLog)
  })
  const instance = {
    directory: async () => directory,
    ownProxy: { header: 'x-busbar-proxy', value: 'bench' },
    trustedProxies: []
  }
  const containers = { runtime: { get: () => undefined }, images: { get: () => undefined } }
  const caddy = await openCaddy({ settings: given, exec, clock: systemClock(), instance, log, containers })
  if (caddy === undefined) throw new Error('the program caddy is not there: apt-get install caddy')
  return { ...caddy, port: http }
}

async function close({ driver, close: end }: Proxy): Promise<void> {
  await driver.release()
  await end()
}

const targetsOf = (port: number, id: string): ApplicationTargets =>
  new Map([[null, { deploymentId: id, containerId: id, host: '127.0.0.1', port }]])

const routeOf = (name: string): ProxyRoute => ({
  id: name,
  hostname: name,
  path: '/',
  applicationId: 'x',
  containerPort: null,
  stripPath: false,
  internalPath: '',
  forceHttps: false,
  tls: { mode: 'off' },
  features: [],
  handlers: []
})
const tableOf = (...names: string[]): RoutingTable => ({
  routes: names.map(routeOf),
  certificates: [],
  platform: null,
  trustedProxies: []
})

const loadOf = (port: number, amount: number) => ({
  url: `http://127.0.0.1:${port}/`,
  connections,
  amount,
  tokens: [],
  headers: { host: hostname }
})

/** Deploys, one after the other, until `isOver`; how many. */
async function deployAgain(
  { driver }: Proxy,
  targets: readonly ApplicationTargets[],
  isOver: (made: number) => boolean,
  pauseMs: number
): Promise<number> {
  let made = 0
  while (!isOver(made)) {
    made++
    const next = targets[made % targets.length]
    if (next === undefined) break
    const switched = await driver.switchTo('x', next)
    await switched?.drain(pauseMs)
    await sleep(pauseMs)
  }
  return made
}

async function throughSwitches(
  proxy: Proxy,
  targets: readonly ApplicationTargets[],
  generator: LoadGenerator
): Promise<Row[]> {
  const [first = new Map()] = targets
  await proxy.driver.retarget('x', first)
  await proxy.driver.load(tableOf(hostname))
  const visitors = await ProxiedVisitors.come(proxy.port, hostname, { senders: 3, sockets: 10 })
  let isLoadOver = false
  const load = generator.ask('load', loadOf(proxy.port, requests)).finally(() => {
    isLoadOver = true
  })
  const made = await deployAgain(proxy, targets, n => n >= switches && isLoadOver, 500)
  const result = await load
  const report = await visitors.leave()
  return [
    {
      measure: `failed requests of ${result.requests} over ${made} deploys`,
      ours: count(result.failed),
      goal: oursAtMost(0)
    },
    {
      measure: `failed uploads of ${report.uploads}`,
      ours: count(report.failedUploads),
      goal: oursAtMost(0)
    },
    {
      measure: `WebSockets of ${report.sockets} that broke`,
      ours: count(report.brokenSockets),
      goal: oursAtMost(0)
    }
  ]
}

async function tailOfSwitches(
  proxy: Proxy,
  targets: readonly ApplicationTargets[],
  generator: LoadGenerator
): Promise<Row> {
  const during: number[] = []
  const control: number[] = []
  const quiet = async (): Promise<void> => {
    control.push((await generator.ask('load', loadOf(proxy.port, requestsOfRound))).p99Ms)
  }
  const switched = async (): Promise<void> => {
    let isOver = false
    const deploys = deployAgain(proxy, targets, () => isOver, 100)
    during.push((await generator.ask('load', loadOf(proxy.port, requestsOfRound))).p99Ms)
    isOver = true
    await deploys
  }
  for (let round = 0; round < rounds; round++)
    for (const side of round % 2 === 0 ? [quiet, switched] : [switched, quiet]) await side()
  return {
    measure: 'p99 while deploys switch, and while none does',
    ours: millis(median(during)),
    reference: millis(median(control)),
    ratio: medianRatio(during, control),
    goal: ratioAtMost(1.5)
  }
}

async function changeAmongMany(proxy: Proxy): Promise<Row> {
  const names = Array.from({ length: manyRoutes }, (_, n) => `h${n}.example.com`)
  await proxy.driver.load(tableOf(hostname, ...names))
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const added = `new${round}.example.com`
    const startedAt = performance.now()
    const loading = proxy.driver.load(tableOf(hostname, ...names, added))
    while ((await visit(proxy.port, added)) !== 200) await sleep(5)
    times.push(performance.now() - startedAt)
    await loading
  }
  await proxy.driver.load(tableOf(hostname))
  return {
    measure: `a domain is added to ${manyRoutes} and answers`,
    ours: millis(median(times)),
    goal: oursAtMost(1000)
  }
}

async function withNotes(
  noted: Proxy,
  silent: Proxy,
  targets: readonly ApplicationTargets[],
  generator: LoadGenerator
): Promise<Row> {
  const [first = new Map()] = targets
  for (const { driver } of [noted, silent]) {
    await driver.retarget('x', first)
    await driver.load(tableOf(hostname))
  }
  const times = { noted: [] as number[], silent: [] as number[] }
  const microsOf = async ({ port }: Proxy): Promise<number> => {
    const startedAt = performance.now()
    const { requests: answered } = await generator.ask('load', loadOf(port, requestsOfRound * 2))
    return ((performance.now() - startedAt) * 1000) / answered
  }
  for (let round = 0; round < rounds; round++)
    for (const side of round % 2 === 0 ? (['noted', 'silent'] as const) : (['silent', 'noted'] as const))
      times[side].push(await microsOf(side === 'noted' ? noted : silent))
  return {
    measure: 'a request with traces noted, and without; 0.75 of the throughput is ×1.33',
    ours: micros(median(times.noted)),
    reference: micros(median(times.silent)),
    ratio: medianRatio(times.noted, times.silent),
    goal: ratioAtMost(1 / 0.75)
  }
}
