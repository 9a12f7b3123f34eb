import { applicationTeardown } from 'busbar/api/applications'
import { routeDirectory } from 'busbar/api/domains'
import { figureSources } from 'busbar/api/metrics'
import {
  type Contributor,
  type Health,
  kernel,
  optional,
  type ServiceBinder,
  type StartContext
} from 'busbar/sdk'
import { accessLogFiles, type RequestRecorder, requestRecorder } from './api.js'
import { figuresOf } from './figures.js'
import { AccessLogs } from './files/access-logs.js'
import { PlaceStore } from './files/place-store.js'
import { FeedStore } from './read/feed-store.js'
import { HistoryStore } from './read/history-store.js'
import { RemovalStore } from './read/removal-store.js'
import { TraceFeed } from './read/trace-feed.js'
import { TraceHistory } from './read/trace-history.js'
import { LiveTraces } from './record/live-traces.js'
import { Recorder } from './record/recorder.js'
import { TraceStore } from './record/trace-store.js'
import { TraceWriter } from './record/trace-writer.js'
import { goneTopic, writtenSignal } from './record/written-signal.js'
import { Retention } from './retention.js'
import type { Settings } from './settings.js'

export const needs = {
  db: kernel.database,
  bus: kernel.bus,
  clock: kernel.clock,
  secrets: kernel.secrets,
  domains: optional(routeDirectory),
  files: accessLogFiles
}

const removedAtOnce = 5_000

/** The running plugin. */
export interface Requests {
  readonly recorder: Recorder
  readonly writer: TraceWriter
  readonly accessLogs: AccessLogs
  readonly counts: { readonly skipped: number; readonly unread: number }
  readonly history: TraceHistory
  readonly feedStore: FeedStore
  readonly feed: TraceFeed
  readonly retention: Retention
  readonly forgetApplication: (applicationId: string, signal: AbortSignal) => Promise<void>
}

export function startRequests({
  use,
  config,
  log,
  signal,
  onStop
}: StartContext<typeof needs, Settings>): Requests {
  const { db, bus, clock } = use
  const clean = (text: string): string => use.secrets.clean(text)
  const writer = new TraceWriter({ ...use, store: new TraceStore(db), live: new LiveTraces(bus) })
  const recorder = new Recorder({ writer, clock, log, clean })
  const recording = recorder.run(signal)
  const feedStore = new FeedStore(db)
  const feed = new TraceFeed({ store: feedStore, clock, log })
  const stops = [
    bus.onSignal(writtenSignal.topic, data => {
      feed.wake(writtenSignal.read(data))
    }),
    bus.onSignal(goneTopic, applicationId => {
      feed.end(applicationId)
    })
  ]
  onStop(async () => {
    for (const stop of stops) stop()
    feed.close()
    await recording
  })
  const removals = new RemovalStore(db)
  const counts = { skipped: 0, unread: 0 }
  return {
    recorder,
    writer,
    counts,
    accessLogs: new AccessLogs({ ...use, writer, places: new PlaceStore(db), log, clean, counts }),
    history: new TraceHistory(new HistoryStore(db), clock),
    feedStore,
    feed,
    retention: new Retention({ removals, settings: config, clock, log }),
    forgetApplication: async (applicationId, aborted) => {
      await bus.signal(goneTopic, applicationId)
      while ((await removals.removeOfApplication(applicationId, removedAtOnce)) > 0) aborted.throwIfAborted()
    }
  }
}

export function requestServices(provide: ServiceBinder, { recorder }: Requests): void {
  provide(requestRecorder, {
    record: request => {
      recorder.record(request)
    }
  } satisfies RequestRecorder)
}

export function requestContributions(
  contribute: Contributor,
  { forgetApplication, recorder, writer, counts }: Requests
): void {
  contribute(applicationTeardown, 'requests', {
    teardown: async (applicationId, context) => {
      await forgetApplication(applicationId, context.signal)
    }
  })
  contribute(figureSources, 'requests', {
    figures: () => figuresOf({ ...counts, stored: writer.stored, dropped: recorder.dropped })
  })
}

export function requestsHealth({ writer }: Requests): Health {
  const { fault } = writer
  return fault === null
    ? { status: 'ok' }
    : { status: 'degraded', reason: `requests cannot be stored for now: ${fault}` }
}
