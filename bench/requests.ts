import {
  type Benchmark,
  count,
  micros,
  millis,
  oursAtMost,
  percent,
  type Row,
  ratioAtMost
} from './benchmark.js'
import type { ReferenceReady } from './reference-server.js'
import { Child } from './rig/child.js'
import { type Cost, costOf, type LoadGenerator, startLoadGenerator } from './rig/load.js'
import { openPlatform, type Platform } from './rig/platform.js'
import { median, medianRatio } from './statistics.js'

const connections = 32
const rounds = 15
/** More than a second of the server's CPU: /proc counts in hundredths of one. */
const amount = 32 * 350
/** In which statements are counted and nothing is timed: to count them costs a request a microsecond. */
const countedRounds = 2
const warmUp = 32 * 150

const rungs = ['http', 'fastify', 'pg', 'knex'] as const
export type Rung = (typeof rungs)[number]
type Reference = Child<ReferenceReady, {}>
type Side = Rung | 'one' | 'two'

/** Goal 1: what a request costs, rung by rung. */
export const requests: Benchmark = {
  name: 'requests',
  title: `Goal 1: one request, ${connections} connections, ${rounds} rounds. The reference is rung d: fastify, a response schema and one query by knex`,
  async run() {
    const platform = await openPlatform()
    const generator = await startLoadGenerator()
    const references = new Map<Side, Reference>()
    try {
      for (const rung of rungs) references.set(rung, await startReference(rung, platform))
      return await measure(platform, references, generator)
    } finally {
      await Promise.all(
        [...references.values(), generator].map(async child => {
          await child.stop()
        })
      )
      await platform.close()
    }
  }
}

async function startReference(rung: Rung, { process, projectId }: Platform): Promise<Reference> {
  return await Child.start(new URL('./reference-server.js', import.meta.url), {
    args: [rung, process.ready.databaseUrl, projectId]
  })
}

async function measure(
  platform: Platform,
  references: ReadonlyMap<Side, Reference>,
  generator: LoadGenerator
): Promise<Row[]> {
  const one = `/api/projects/${platform.projectId}`
  // A page that is full is counted by a second query.
  const paths: Readonly<Record<Side, string>> = {
    http: one,
    fastify: one,
    pg: one,
    knex: one,
    one,
    two: '/api/projects?limit=1'
  }
  const sides: readonly Side[] = [...rungs, 'one', 'two']
  const run = async (side: Side, requests: number): Promise<Cost> => {
    const reference = references.get(side)
    const server = reference ?? platform.process
    const tokens = reference === undefined ? await platform.tokens.take(requests, connections) : []
    return await costOf(server, generator, {
      url: `http://127.0.0.1:${server.ready.port}${paths[side]}`,
      connections,
      amount: requests,
      tokens
    })
  }

  await useEveryToken(platform, generator)
  for (const side of sides) await run(side, warmUp)
  const costs = new Map<Side, Cost[]>(sides.map(side => [side, []]))
  for (let round = 0; round < rounds; round++) {
    for (const side of sides) costs.get(side)?.push(await run(side, amount))
  }
  await platform.process.ask('countStatements')
  let failedBesides = 0
  for (let round = 0; round < countedRounds; round++)
    for (const side of ['one', 'two'] as const) failedBesides += (await run(side, amount)).failed
  const statements = Object.entries(await platform.process.ask('statements'))
  const sent = (name: RegExp): number =>
    statements.filter(([text]) => name.test(text)).reduce((sum, [, times]) => sum + times, 0)
  const asked = 2 * countedRounds * amount
  const { cpu, latency, failed } = summarise(costs)
  return [
    cpu('a: node:http and JSON', 'http'),
    cpu('b: fastify and a response schema', 'fastify'),
    cpu('c: and one query, pg', 'pg'),
    { ...cpu('one query: CPU', 'one'), goal: ratioAtMost(1.1) },
    latency('one query: p50', 'one', 'p50Ms'),
    { ...latency('one query: p99', 'one', 'p99Ms'), goal: ratioAtMost(1.5) },
    { ...cpu('two queries: CPU (0.60 × the rate of d)', 'two'), goal: ratioAtMost(1 / 0.6) },
    latency('two queries: p99', 'two', 'p99Ms'),
    {
      measure: 'requests with a look-up of their token',
      ours: percent((100 * sent(/^identity\.token\./)) / asked),
      goal: oursAtMost(1)
    },
    { measure: 'statements a request, of one and two queries', ours: count(sent(/./) / asked) },
    { measure: 'failed requests', ours: count(failed + failedBesides), goal: oursAtMost(0) }
  ]
}

function summarise(costs: ReadonlyMap<Side, readonly Cost[]>) {
  const all = (side: Side, key: 'cpuMicros' | 'p50Ms' | 'p99Ms'): number[] =>
    (costs.get(side) ?? []).map(cost => cost[key])
  const compare = (side: Side, key: 'cpuMicros' | 'p50Ms' | 'p99Ms') => ({
    ours: median(all(side, key)),
    reference: median(all('knex', key)),
    ratio: medianRatio(all(side, key), all('knex', key))
  })
  return {
    cpu(measure: string, side: Side): Row {
      const { ours, reference, ratio } = compare(side, 'cpuMicros')
      return { measure, ours: micros(ours), reference: micros(reference), ratio }
    },
    latency(measure: string, side: Side, key: 'p50Ms' | 'p99Ms'): Row {
      const { ours, reference, ratio } = compare(side, key)
      return { measure, ours: millis(ours), reference: millis(reference), ratio }
    },
    failed: [...costs.values()].flat().reduce((sum, cost) => sum + cost.failed, 0)
  }
}

/** Once each, so that the rounds see what is asked of the database in the long run. */
async function useEveryToken(
  { process, tokens, projectId }: Platform,
  generator: LoadGenerator
): Promise<void> {
  const amount = tokens.all.length
  await generator.ask('load', {
    url: `http://127.0.0.1:${process.ready.port}/api/projects/${projectId}`,
    connections: 1,
    amount,
    tokens: tokens.all
  })
}
