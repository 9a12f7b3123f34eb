import { setMaxListeners } from 'node:events'
import type { ContainerEvent, ContainerRuntime } from 'busbar/api/containers'
import {
  Backoff,
  type Bus,
  type Clock,
  type Contributions,
  type Log,
  type OptionalHandle,
  type Secrets
} from 'busbar/sdk'
import type { LogSourceKind } from '../api.js'
import type { KeptChunk } from '../kept/log-store.js'
import type { RemovalStore } from '../kept/removal-store.js'
import type { CollectStore } from './collect-store.js'
import { ContainerFollows } from './container-follows.js'
import { LiveLines } from './live-lines.js'
import { LogWriter } from './log-writer.js'

interface CollectorParts {
  readonly store: CollectStore
  readonly removals: RemovalStore
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly kinds: Contributions<LogSourceKind>
  readonly bus: Bus
  readonly secrets: Pick<Secrets, 'clean'>
  readonly clock: Clock
  readonly log: Log
  readonly keptSince: () => Date
  /** Told before anything is kept. */
  readonly onBegin: () => void
  /** Told when lines of a source have been kept: the ordinal behind the last of them, and what they are where that is known. */
  readonly onKept: (sourceId: string, end: number, chunks: readonly KeptChunk[] | undefined) => void
  /** Of one source; 0: no limit. */
  readonly mostBytes: number
}

/** A source that has more than it may loses some more than that, so that it does not lose some with every line. */
const keptShare = 0.95
/** How often it is looked, in memory, whether a plugin with sources has come, or was off for a while. */
const kindsMs = 5000

/** Keeps what the containers of the installation write, while any process of it lives; one process at a time does it. */
export class Collector {
  readonly #live: LiveLines

  constructor(private readonly parts: CollectorParts) {
    this.#live = new LiveLines(parts)
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.parts.runtime.whileAvailable(signal, async (runtime, following) => {
      await this.#collect(runtime, following, signal)
    })
  }

  /** Ends with `following`, or rejects where another collector has begun. What has been kept is told until `running` aborts. */
  async #collect(runtime: ContainerRuntime, following: AbortSignal, running: AbortSignal): Promise<void> {
    const { store, secrets, clock, log, onBegin, onKept } = this.parts
    const end = new AbortController()
    const abort = (): void => {
      end.abort(following.reason)
    }
    following.addEventListener('abort', abort)
    if (following.aborted) abort()
    const { signal } = end
    // Of each container that is read.
    setMaxListeners(0, signal)
    const turn = await store.begin()
    onBegin()
    const writer = new LogWriter(
      {
        store,
        clock,
        log,
        clean: text => secrets.clean(text),
        onKept: async kept => {
          onKept(kept.container.sourceId, kept.ordinal + kept.lines, kept.known)
          await this.#live.tell(kept, running)
        },
        onGrown: async (sourceId, bytes) => await this.#bound(sourceId, bytes)
      },
      turn
    )
    const follows = new ContainerFollows({ ...this.parts, runtime, writer, signal })
    const unwatch = this.#watchKinds(async () => {
      await this.#compareAll(runtime, follows, signal)
    })
    try {
      await Promise.race([writer.run(signal), this.#watch(runtime, follows, signal)])
    } finally {
      following.removeEventListener('abort', abort)
      unwatch()
      end.abort(new Error('the collector has ended'))
      writer.close()
    }
  }

  /** Every connection begins with a `resync`, so nothing that happened before it is missed. */
  async #watch(runtime: ContainerRuntime, follows: ContainerFollows, signal: AbortSignal): Promise<void> {
    for await (const event of runtime.events(signal)) {
      if (event.kind === 'resync') await this.#compareAll(runtime, follows, signal)
      else if (isStart(event)) follows.follow({ id: event.containerId, owner: event.owner })
    }
  }

  /** A plugin that comes may have containers that run already. */
  #watchKinds(changed: () => Promise<void>): () => void {
    const { kinds, clock } = this.parts
    let known = kinds.entries()
    return clock.every(kindsMs, async () => {
      const now = kinds.entries()
      if (now === known) return
      known = now
      await changed()
    })
  }

  async #compareAll(
    runtime: ContainerRuntime,
    follows: ContainerFollows,
    signal: AbortSignal
  ): Promise<void> {
    const { removals, clock, log } = this.parts
    const backoff = new Backoff(clock, { firstMs: 1000, longestMs: 30_000 })
    while (!signal.aborted) {
      try {
        const containers = await runtime.list({})
        // In the order of their starts, so that what was written before the platform came is kept in about its order.
        const inOrder = [...containers].sort((a, b) => (a.startedAt < b.startedAt ? -1 : 1))
        for (const container of inOrder) if (container.status !== 'created') follows.follow(container)
        await removals.forgetContainers(containers.map(({ id }) => id))
        return
      } catch (error) {
        if (signal.aborted) return
        log[backoff.isFresh ? 'warn' : 'debug'](
          { err: error },
          'the containers whose output is kept could not be looked at; it is tried again'
        )
        await backoff.pause(signal)
      }
    }
  }

  async #bound(sourceId: string, bytes: number): Promise<void> {
    const { mostBytes, removals, log } = this.parts
    if (mostBytes === 0 || bytes <= mostBytes) return
    try {
      while (await removals.removeBeyond(sourceId, mostBytes * keptShare));
    } catch (error) {
      log.warn(
        { err: error, sourceId },
        'the oldest lines of a source that has too many could not be removed'
      )
    }
  }
}

const isStart = (event: Extract<ContainerEvent, { kind: 'container' }>): boolean =>
  event.action === 'start' || event.action === 'restart'
