import type { Log, PlatformStatistics, Statistics } from 'busbar/sdk'
import type { Hub } from './bus/hub.js'
import { withDeadline } from './clock/waits.js'
import type { Postgres } from './database/postgres.js'
import type { StallRecord } from './event-loop/stall-record.js'
import type { Edge } from './http/edge.js'
import type { StreamCap } from './http/stream-cap.js'
import type { JobRunner } from './jobs/job-runner.js'
import type { Reconciler } from './plugins/reconciler.js'

interface StatisticsParts {
  readonly edge: Edge
  readonly hub: Hub
  readonly postgres: Postgres
  readonly jobs: JobRunner
  readonly streams: StreamCap
  readonly stalls: StallRecord
  readonly reconciler: Reconciler
  readonly log: Log
}

const jobsLimitMs = 5_000

/** What the parts of the kernel count, in one place. */
export const statisticsOf = (parts: StatisticsParts): Statistics => ({
  read: async () => {
    const [connections, jobs] = await Promise.all([parts.edge.connections(), jobStatistics(parts)])
    return {
      http: { ...httpStatistics(parts), connections },
      bus: { sockets: parts.hub.connections, ...parts.hub.counts },
      database: parts.postgres.use,
      jobs,
      stalls: { count: parts.stalls.all.count, seconds: parts.stalls.all.totalMs / 1000 },
      plugins: [...parts.reconciler.entries.values()].map(({ id, discovered, state }) => ({
        id,
        isBuiltIn: discovered.builtIn,
        state: state.name
      }))
    }
  }
})

function httpStatistics({
  edge: { table, counts },
  streams
}: StatisticsParts): Omit<PlatformStatistics['http'], 'connections'> {
  return {
    routes: table.entries.flatMap(({ record, instance }) => {
      const found = instance === undefined ? undefined : counts.of(record)
      return found === undefined
        ? []
        : [
            {
              plugin: record.plugin,
              method: record.method,
              route: record.url,
              answers: new Map(found.answers),
              durations: [...found.durations],
              seconds: found.seconds
            }
          ]
    }),
    unrouted: new Map(counts.unrouted),
    underWay: [...table.instances].reduce((sum, { inFlight }) => sum + inFlight, 0),
    eventStreams: streams.open
  }
}

async function jobStatistics({ jobs, log }: StatisticsParts): Promise<PlatformStatistics['jobs']> {
  try {
    return await withDeadline(jobs.status(), jobsLimitMs, 'counting the jobs')
  } catch (error) {
    log.debug({ err: error }, 'the jobs could not be counted')
    return undefined
  }
}
