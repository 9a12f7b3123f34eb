import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { pino } from 'pino'
import { startEmbedded } from '../embedded-postgres/index.js'
import { startGitServer } from '../lab/git-server.js'
import {
  type Benchmark,
  kibibytes,
  micros,
  millis,
  oursAtMost,
  percent,
  type Row,
  ratioAtMost
} from './benchmark.js'
import { Deployer } from './rig/deployer.js'
import { expect } from './rig/expect.js'
import { databaseFolder, removeFolder, temporaryFolder } from './rig/leftovers.js'
import { costOf, type LoadGenerator, startLoadGenerator } from './rig/load.js'
import { openPlatform, type Platform, restarted } from './rig/platform.js'
import { cpuMicros, memoryOf } from './rig/process-usage.js'
import { fillApplications, multiply, multiplyDeployments, multiplyLines } from './rig/rows.js'
import { median, medianRatio } from './statistics.js'

const few = 50
const many = 5_000
/** Of the many. A thousand need 10 GB of memory and half an hour more. */
const running = Number(process.env.BENCH_GROWTH_RUNNING ?? 100)
/** The network of a project has 61 addresses. */
const runningOfProject = 50
const deployedAtOnce = 4
/** With so many at once, one user's budget of requests has room for this. */
const pollMs = 1_000
/** Of an application the platform keeps two hundred deployments. */
const records = { few: 1_000, many: 1_000_000, ofEach: 199 }
/** Each container writes so many lines when it starts, which are kept together. */
const linesAtStart = 100
const starts = 3
const settleMs = 30_000
/** Two looks at the health of what runs. */
const idleMs = 60_000
const connections = 8
const amount = connections * 60
const rounds = 7

const smallApplication = {
  Dockerfile: `FROM busybox:lab
COPY start healthz /www/
EXPOSE 3000
CMD ["sh", "/www/start"]
`,
  healthz: 'fine\n',
  start: `n=0
while [ $n -lt ${linesAtStart} ]; do echo "line $n of what it writes when it starts"; n=$((n + 1)); done
exec httpd -f -p 3000 -h /www
`
}

/** Goal 8: what an idle platform costs, and what that grows with. */
export const growth: Benchmark = {
  name: 'growth',
  title: `Goal 8: from none to ${many} applications, of which ${running} run and are asked for their health`,
  async run() {
    const directory = await temporaryFolder()
    const server = await startGitServer({ root: join(directory, 'git') })
    const { url: repository } = await server.createRepository('small', smallApplication)
    const embedded = await startEmbedded({
      directory: join(directory, databaseFolder),
      log: pino({ level: 'silent' }),
      // What is measured is read; what is written is written to be read.
      fsync: false
    })
    const tokensEach = 4 * connections * rounds
    const generator = await startLoadGenerator()
    const database = new pg.Client({ connectionString: embedded.url })
    let platform = await openPlatform({ admins: 3, tokensEach, databaseUrl: embedded.url })
    try {
      await database.connect()
      const again = async (): Promise<Platform> => {
        platform = await restarted(platform)
        return platform
      }
      return await measure(again, generator, database, repository)
    } finally {
      await database.end()
      await generator.stop()
      await platform.close()
      await embedded.stop()
      await server.close()
      await removeFolder(directory)
    }
  }
}

async function measure(
  again: () => Promise<Platform>,
  generator: LoadGenerator,
  database: pg.Client,
  repository: string
): Promise<Row[]> {
  const empty = await restAfterStarts(again)
  note(`an empty platform: ${told(empty)}`)
  let { platform } = empty
  const path = `/api/projects/${platform.projectId}/applications`
  const page = `${path}?limit=50`

  await fillApplications(platform, database, path, few)
  const smallPage = await costsOf(platform, generator, page)
  const deployed = await deploySome(platform, repository)
  note(`${running} applications run`)
  await multiply(database, 'applications.application', 'project_id', platform.projectId, many - few - running)
  await database.query('analyze')
  const full = await restAfterStarts(again)
  platform = full.platform
  note(`${many} applications: ${told(full)}`)
  const largePage = await costsOf(platform, generator, page)
  return [
    {
      measure: 'no application: CPU of an idle platform',
      ours: percent((100 * empty.idleMicros) / idleMs / 1000),
      goal: oursAtMost(1)
    },
    {
      measure: `${many} applications, ${running} of which run: CPU for each and second`,
      ours: micros(Math.max(0, full.idleMicros - empty.idleMicros) / (idleMs / 1000) / many),
      goal: oursAtMost(10)
    },
    {
      measure: 'the same, for each that runs',
      ours: micros(Math.max(0, full.idleMicros - empty.idleMicros) / (idleMs / 1000) / running)
    },
    {
      measure: 'resident memory for each',
      ours: kibibytes(((full.residentMib - empty.residentMib) * 1024) / many),
      goal: oursAtMost(20)
    },
    {
      measure: 'kernel loaded → listening; the reference has no application',
      ours: millis(median(full.startMs)),
      reference: millis(median(empty.startMs)),
      ratio: median(full.startMs) / median(empty.startMs),
      goal: ratioAtMost(1.5)
    },
    pageRow(`a page of 50 of ${many} applications; of ${few}`, largePage, smallPage),
    ...(await recordPages(platform, generator, database, deployed))
  ]
}

/** It takes minutes: who waits sees that it goes on. */
const note = (what: string): void => console.error(`  growth: ${what}`)

const told = ({ idleMicros, residentMib, startMs }: Rest): string =>
  `${((100 * idleMicros) / idleMs / 1000).toFixed(2)} % of a core, ${residentMib.toFixed(0)} MiB, listening after ${median(startMs).toFixed(0)} ms`

interface Rest {
  readonly platform: Platform
  /** CPU time within `idleMs` with nobody asking for anything. */
  readonly idleMicros: number
  readonly residentMib: number
  readonly startMs: readonly number[]
}

async function restAfterStarts(again: () => Promise<Platform>): Promise<Rest> {
  const startMs: number[] = []
  let platform = await again()
  for (let round = 0; round < starts; round++) {
    platform = await again()
    startMs.push(platform.process.ready.startMs)
  }
  await sleep(settleMs)
  const { pid } = platform.process
  const before = cpuMicros(pid)
  await sleep(idleMs)
  return { platform, idleMicros: cpuMicros(pid) - before, residentMib: memoryOf(pid).residentMib, startMs }
}

/** Applications that serve; the path of the first. */
async function deploySome({ admin, projectSlug }: Platform, repository: string): Promise<string> {
  const projects: string[] = []
  for (let n = 0; n < running; n += runningOfProject)
    projects.push(
      (
        expect(
          await admin.post('/api/projects', { name: `Busy ${n}`, slug: `${projectSlug}-${n}` }),
          201
        ) as { id: string }
      ).id
    )
  let next = 0
  const deploy = async (): Promise<string> => {
    const projectId = projects[Math.floor(next++ / runningOfProject)] ?? ''
    const application = await Deployer.create(admin, projectId, repository)
    await application.finished(await application.start(), pollMs)
    if (next % 100 === 0) note(`${next} are deployed`)
    return application.path
  }
  // What the others need of its build is there then.
  const first = await deploy()
  const workers = Array.from({ length: deployedAtOnce }, async () => {
    while (next < running) await deploy()
  })
  await Promise.all(workers)
  return first
}

/** Pages of what is recorded, among few and among many. */
async function recordPages(
  platform: Platform,
  generator: LoadGenerator,
  database: pg.Client,
  deployed: string
): Promise<Row[]> {
  const id = deployed.slice(deployed.lastIndexOf('/') + 1)
  const ofAll = 'deployments of all applications'
  const ofOne = 'deployments of one of them'
  const audited = 'audit records'
  const lines = 'log lines of one application'
  const addresses = {
    [ofAll]: '/api/deployments?limit=50',
    [ofOne]: `${deployed}/deployments?limit=50`,
    [audited]: '/api/audit-logs?limit=50',
    [lines]: `${deployed}/logs/history?limit=50`
  }
  const measured = async (): Promise<Readonly<Record<string, PageCosts>>> => {
    await database.query('analyze')
    const costs: Record<string, PageCosts> = {}
    for (const [what, address] of Object.entries(addresses))
      costs[what] = await costsOf(platform, generator, address)
    return costs
  }
  const fill = async (deploymentsEach: number, others: number): Promise<void> => {
    await multiplyDeployments(database, id, deploymentsEach)
    await multiplyLines(database, id, others / linesAtStart)
    await multiply(database, 'kernel.audit_log', 'action', 'login', others)
  }
  await fill(1, records.few)
  const few = await measured()
  note('pages among few records were measured')
  await fill(records.ofEach, records.many - records.few)
  note(`there are ${records.many} deployments and as many audit records and log lines`)
  const large = await measured()
  return Object.keys(addresses).map(what => {
    const [one, other] = [large[what], few[what]]
    if (one === undefined || other === undefined) throw new Error(`${what} were not measured`)
    return pageRow(`a page of 50 of ${what}, of which there are ${records.many} in all; of few`, one, other)
  })
}

interface PageCosts {
  readonly cpu: readonly number[]
  readonly p50: readonly number[]
}

/** The CPU of the platform, and how long a page takes, in which the database has its part. */
async function costsOf(
  { process, tokens, url }: Platform,
  generator: LoadGenerator,
  path: string
): Promise<PageCosts> {
  const cpu: number[] = []
  const p50: number[] = []
  for (let round = -2; round < rounds; round++) {
    const cost = await costOf(process, generator, {
      url: url + path,
      connections,
      amount,
      tokens: await tokens.take(amount, connections)
    })
    if (cost.failed > 0) throw new Error(`${cost.failed} requests failed`)
    if (round < 0) continue
    cpu.push(cost.cpuMicros)
    p50.push(cost.p50Ms)
  }
  return { cpu, p50 }
}

const pageRow = (measure: string, large: PageCosts, small: PageCosts): Row => ({
  measure: `${measure}: p50`,
  ours: millis(median(large.p50)),
  reference: millis(median(small.p50)),
  ratio: medianRatio([...large.p50], [...small.p50]),
  goal: ratioAtMost(1.2)
})
