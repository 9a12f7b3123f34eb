import { applicationTeardown } from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/containers'
import { deploymentDirectory } from 'busbar/api/deployments'
import { type Contributor, kernel, optional, type ServiceBinder, type StartContext } from 'busbar/sdk'
import { type LogArchive, logArchive, logSources } from './api.js'
import { ApplicationStore } from './application-store.js'
import { CollectStore } from './collect/collect-store.js'
import { Collector } from './collect/collector.js'
import { Archive } from './kept/archive.js'
import { LogHistory } from './kept/log-history.js'
import { LogPoll } from './kept/log-poll.js'
import { LogStore } from './kept/log-store.js'
import { RemovalStore } from './kept/removal-store.js'
import { StreamReads } from './kept/stream-reads.js'
import { removeOld } from './retention.js'
import type { Settings } from './settings.js'

export const needs = {
  db: kernel.database,
  bus: kernel.bus,
  clock: kernel.clock,
  secrets: kernel.secrets,
  runtime: optional(containerRuntime),
  deployments: optional(deploymentDirectory),
  kinds: logSources
}

const dayMs = 86_400_000
const mebibyte = 2 ** 20

/** The running plugin. */
export interface Logs {
  readonly archive: LogArchive
  readonly applications: ApplicationStore
  readonly collector: Collector
  /** Deletes what is too old. */
  readonly retain: (signal: AbortSignal) => Promise<void>
}

export function startLogs({ use, config, log }: StartContext<typeof needs, Settings>): Logs {
  const store = new LogStore(use.db)
  const reads = new StreamReads(store)
  const poll = new LogPoll({ store, reads, clock: use.clock, log })
  const removals = new RemovalStore(use.db)
  const keptSince = (): Date => new Date(use.clock.now().getTime() - config.retention_days * dayMs)
  return {
    archive: new Archive({
      ...use,
      store,
      removals,
      pages: new LogHistory(store),
      reads,
      poll
    }),
    applications: new ApplicationStore(use.db),
    collector: new Collector({
      ...use,
      store: new CollectStore(use.db),
      removals,
      log,
      keptSince,
      onBegin: () => {
        poll.begins()
      },
      onKept: (sourceId, end, chunks) => {
        poll.kept(sourceId, end, chunks)
      },
      mostBytes: config.source_mib * mebibyte
    }),
    retain: async signal => {
      await removeOld(keptSince(), { removals, log, signal })
    }
  }
}

export function logServices(provide: ServiceBinder, { archive }: Logs): void {
  provide(logArchive, archive)
}

export function logContributions(contribute: Contributor, { archive }: Logs): void {
  contribute(logSources, 'application', { sourceOf: ({ applicationId }) => applicationId })
  contribute(applicationTeardown, 'logs', {
    teardown: async applicationId => {
      await archive.forget(applicationId)
    }
  })
}
