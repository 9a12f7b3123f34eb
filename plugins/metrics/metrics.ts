import { applicationTeardown } from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/containers'
import { hostFigures } from 'busbar/api/platform'
import { type Contributor, type Health, kernel, optional, type StartContext } from 'busbar/sdk'
import { applicationDomains, figureSources } from './api.js'
import { ApplicationContainers } from './application/application-containers.js'
import { ApplicationFeed } from './application/application-feed.js'
import { ApplicationHistory } from './application/application-history.js'
import { ApplicationHistoryStore } from './application/application-history-store.js'
import { ApplicationSamples } from './application/application-samples.js'
import { ApplicationStore } from './application/application-store.js'
import { ProjectUsage } from './application/project-usage.js'
import { HostHistory } from './host/host-history.js'
import { HostSampler } from './host/host-sampler.js'
import { hostSource } from './host/host-source.js'
import { HostStore } from './host/host-store.js'
import { Exposition } from './prometheus/exposition.js'
import { OpenListener } from './prometheus/open-listener.js'
import { ProcessFigures } from './prometheus/process-figures.js'
import type { Settings } from './settings.js'
import { hostUsageOf } from './shown-usage.js'

export const needs = {
  db: kernel.database,
  clock: kernel.clock,
  instance: kernel.instance,
  statistics: kernel.statistics,
  runtime: optional(containerRuntime),
  domains: applicationDomains,
  sources: figureSources
}

/** The running plugin. */
export interface Metrics {
  readonly host: HostSampler
  readonly hostHistory: HostHistory
  readonly feed: ApplicationFeed
  readonly applicationHistory: ApplicationHistory
  readonly projectUsage: ProjectUsage
  readonly exposition: Exposition
  /** Undefined where figures are served to callers with a credential alone. */
  readonly listener: OpenListener | undefined
}

export function startMetrics({
  use,
  config,
  log,
  signal,
  onStop
}: StartContext<typeof needs, Settings>): Metrics {
  const host = new HostSampler({ source: hostSource(), clock: use.clock })
  const hostHistory = new HostHistory({
    sampler: host,
    store: new HostStore(use.db),
    clock: use.clock,
    log,
    retentionHours: config.host_retention_hours
  })
  onStop(async () => {
    await hostHistory.stop()
  })
  const store = new ApplicationStore(use.db)
  const containers = new ApplicationContainers(use.runtime)
  const samples = new ApplicationSamples({ ...use, containers })
  const applicationHistory = new ApplicationHistory({
    store: new ApplicationHistoryStore(use.db),
    applications: store,
    samples,
    clock: use.clock,
    log,
    retentionHours: config.application_retention_hours
  })
  onStop(async () => {
    await applicationHistory.stop()
  })
  const figures = new ProcessFigures()
  figures.start()
  onStop(() => {
    figures.stop()
  })
  const exposition = new Exposition({ ...use, process: figures, log })
  const listener =
    config.bind === undefined
      ? undefined
      : new OpenListener({ bind: config.bind, exposition, clock: use.clock, log })
  void listener?.run(signal)
  onStop(() => {
    listener?.close()
  })
  return {
    host,
    hostHistory,
    feed: new ApplicationFeed({ store, samples, clock: use.clock, log }),
    applicationHistory,
    projectUsage: new ProjectUsage({ ...use, store, containers, samples, log }),
    exposition,
    listener
  }
}

export function metricsContributions(contribute: Contributor, { host, applicationHistory }: Metrics): void {
  contribute(hostFigures, 'metrics', { current: async () => hostUsageOf(await host.current()) })
  contribute(applicationTeardown, 'metrics', {
    teardown: async applicationId => {
      await applicationHistory.remove(applicationId)
    }
  })
}

export function metricsHealth({ listener }: Metrics): Health {
  return listener?.reason === undefined ? { status: 'ok' } : { status: 'degraded', reason: listener.reason }
}
