import pg from 'pg'
import { type Benchmark, micros, millis, oursAtMost, type Row, ratioAtMost } from './benchmark.js'
import { Child } from './rig/child.js'
import { expect } from './rig/expect.js'
import type { ListReady } from './rig/list-server.js'
import { type Cost, costOf, type LoadGenerator, startLoadGenerator } from './rig/load.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { fillApplications, multiply } from './rig/rows.js'
import { median, medianRatio } from './statistics.js'

const connections = 8
const rounds = 11
/** Both sides run several times as long until what they run is compiled. */
const warmUps = 3
const amount = connections * 60
const pageSize = 50
/** The list that clients ask for again and again. */
const wideRows = 100
/** More than a user looks at, in a list that has no limit of its own. */
const manyRows = 1000
const stallRounds = 5

/** Goal 2: lists. */
export const lists: Benchmark = {
  name: 'lists',
  title: `Goal 2: lists, ${rounds} rounds; the reference is fastify, one query by pg and JSON.stringify`,
  async run() {
    const platform = await openPlatform({ admins: 2, tokensEach: 4 * connections * (rounds + warmUps) })
    const generator = await startLoadGenerator()
    const database = new pg.Client({ connectionString: platform.process.ready.databaseUrl })
    try {
      await database.connect()
      return await measure(platform, generator, database)
    } finally {
      await database.end()
      await generator.stop()
      await platform.close()
    }
  }
}

async function measure(platform: Platform, generator: LoadGenerator, database: pg.Client): Promise<Row[]> {
  const path = `/api/projects/${platform.projectId}/applications`
  await fillApplications(platform, database, path, pageSize)
  const columns = Object.keys((expect(await platform.admin.get(path), 200) as object[])[0] ?? {}).length
  const page = await comparePages(platform, generator, path)
  await fillApplications(platform, database, path, wideRows)
  const wide = await compareWideRows(platform, generator, database, path)
  await fillApplications(platform, database, path, manyRows)
  await multiply(database, 'projects.project', 'id', platform.projectId, manyRows - 1)
  return [
    { ...page, measure: `${pageSize} rows of ${columns} fields: CPU of a request` },
    ...wide,
    await longestStall(platform, path, `${manyRows} applications in one answer`),
    await longestStall(platform, '/api/projects', `${manyRows} projects in one answer`)
  ]
}

async function comparePages(platform: Platform, generator: LoadGenerator, path: string): Promise<Row> {
  const { process, projectId } = platform
  const reference = await Child.start<ListReady, {}>(new URL('./rig/list-server.js', import.meta.url), {
    args: [process.ready.databaseUrl, projectId]
  })
  try {
    const row = await inTurns(
      async () => await load(platform, generator, path),
      async () =>
        await costOf(reference, generator, {
          url: `http://127.0.0.1:${reference.ready.port}/`,
          connections,
          amount,
          tokens: []
        })
    )
    return { ...row, goal: ratioAtMost(0.95) }
  } finally {
    await reference.stop()
  }
}

/** A load of requests with a credential. */
async function load(
  { process, tokens, url }: Platform,
  generator: LoadGenerator,
  path: string,
  headers: Readonly<Record<string, string>> = {}
): Promise<Cost> {
  return await costOf(process, generator, {
    url: url + path,
    connections,
    amount,
    tokens: await tokens.take(amount, connections),
    headers
  })
}

/** What both cost, in rounds that go on until what they run is compiled. */
async function inTurns(ours: () => Promise<Cost>, reference: () => Promise<Cost>): Promise<Row> {
  const runs = { ours: [] as number[], reference: [] as number[] }
  for (let round = -warmUps; round < rounds; round++) {
    const both = [await ours(), await reference()] as const
    const failed = both.reduce((sum, run) => sum + run.failed, 0)
    if (failed > 0) throw new Error(`${failed} requests failed`)
    if (round < 0) continue
    runs.ours.push(both[0].cpuMicros)
    runs.reference.push(both[1].cpuMicros)
  }
  return {
    measure: '',
    ours: micros(median(runs.ours)),
    reference: micros(median(runs.reference)),
    ratio: medianRatio(runs.ours, runs.reference)
  }
}

/** The same list as it is made anew, sent again, compressed, and told to be unchanged. */
async function compareWideRows(
  platform: Platform,
  generator: LoadGenerator,
  database: pg.Client,
  path: string
): Promise<Row[]> {
  const anew = async (): Promise<Cost> =>
    await whileChanging(database, async () => await load(platform, generator, path))
  const again = async (headers?: Readonly<Record<string, string>>): Promise<Row> =>
    await inTurns(async () => await load(platform, generator, path, headers), anew)
  const kept = await again()
  const compressed = await again({ 'accept-encoding': 'br' })
  // The rows have been changed meanwhile.
  const told = await inTurns(async () => {
    const { headers } = await platform.admin.get(path)
    return await load(platform, generator, path, { 'if-none-match': headers.etag ?? '' })
  }, anew)
  const of = `${wideRows} rows, the reference is the same list with a change before most requests`
  return [
    { ...kept, measure: `unchanged: ${of}`, goal: ratioAtMost(0.5) },
    { ...compressed, measure: 'unchanged, compressed (br)', goal: ratioAtMost(0.5) },
    { ...told, measure: 'unchanged, 304 to who has it', goal: ratioAtMost(0.3) }
  ]
}

/** Changes one row after the other until the work is done, as fast as the database takes it. */
async function whileChanging<T>(database: pg.Client, work: () => Promise<T>): Promise<T> {
  let isDone = false
  const changing = (async () => {
    while (!isDone)
      await database.query(
        'update applications.application set updated_at = now() where id = (select id from applications.application limit 1)'
      )
  })()
  try {
    return await work()
  } finally {
    isDone = true
    await changing
  }
}

/** How long the loop is held while a list is answered. The machine holds it as well, so the median of several counts. */
async function longestStall({ process, admin }: Platform, path: string, measure: string): Promise<Row> {
  const stalls: number[] = []
  for (let round = 0; round < stallRounds; round++) {
    await process.ask('watchLoop')
    expect(await admin.get(path), 200)
    stalls.push(await process.ask('longestStallMs'))
  }
  return {
    measure: `${measure}: longest stall of the event loop`,
    ours: millis(median(stalls)),
    goal: oursAtMost(10)
  }
}
