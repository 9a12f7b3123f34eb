import type { ContainerRuntime, ContainerState } from 'busbar/api/containers'
import { Backoff, type Clock, type Contributions, isProblem, type Log } from 'busbar/sdk'
import type { LogSourceKind } from '../api.js'
import type { CollectStore, KnownContainer } from './collect-store.js'
import type { LogWriter } from './log-writer.js'
import { OpeningSlots } from './opening-slots.js'
import { seenContainer } from './source-of.js'

interface FollowParts {
  readonly runtime: ContainerRuntime
  readonly store: CollectStore
  readonly writer: Pick<LogWriter, 'add' | 'kept'>
  readonly kinds: Contributions<LogSourceKind>
  readonly clock: Clock
  readonly log: Log
  /** What was written before that is not kept. */
  readonly keptSince: () => Date
  readonly signal: AbortSignal
}

/** What is known of a container without asking for it. */
type Seen = Pick<ContainerState, 'id' | 'owner'> & Partial<Pick<ContainerState, 'status' | 'startedAt'>>

/** A container whose output is read now. */
interface Follow {
  /** It has been started since reading began, so what is read may end with the run before. */
  isStartedAgain: boolean
}

const firstRetryMs = 1000
const longestRetryMs = 30_000

/** Reads the output of containers, of each once at a time, however many are interested in it. */
export class ContainerFollows {
  readonly #active = new Map<string, Follow>()
  readonly #slots = new OpeningSlots()
  /** To be made known, and then followed. */
  #new = new Map<string, Seen>()
  #isRegistering = false
  /** Those whose output could not be read. */
  #failed = new Map<string, Seen>()
  #isRetrying = false
  readonly #retryPause: Backoff

  constructor(private readonly parts: FollowParts) {
    this.#retryPause = new Backoff(parts.clock, { firstMs: firstRetryMs, longestMs: longestRetryMs })
  }

  /** It runs, or has run and may have written something that is not kept. Does nothing while it is followed. */
  follow(seen: Seen): void {
    const active = this.#active.get(seen.id)
    if (active !== undefined) {
      active.isStartedAgain = true
      return
    }
    this.#new.set(seen.id, seen)
    if (!this.#isRegistering) void this.#register()
  }

  /** Of all at once, for many may come together. */
  async #register(): Promise<void> {
    const { store, kinds, clock, log, signal } = this.parts
    const backoff = new Backoff(clock, { firstMs: firstRetryMs, longestMs: longestRetryMs })
    this.#isRegistering = true
    while (this.#new.size > 0 && !signal.aborted) {
      const given = this.#new
      this.#new = new Map()
      const seen = [...given.values()].flatMap(one => seenContainer(one, kinds, log) ?? [])
      try {
        const known = seen.length === 0 ? [] : await store.register(seen, clock.now())
        for (const container of known) this.#begin(container, given.get(container.containerId))
        backoff.reset()
      } catch (error) {
        this.#new = new Map([...given, ...this.#new])
        log[backoff.isFresh ? 'warn' : 'debug'](
          { err: error },
          'the output of containers cannot be followed yet; it is tried again'
        )
        await backoff.pause(signal)
      }
    }
    this.#isRegistering = false
  }

  #begin(container: KnownContainer, seen: Seen | undefined): void {
    if (seen === undefined || this.#active.has(container.containerId)) return
    // It has ended, and all of it is kept.
    const hasRun = seen.status !== undefined && seen.status !== 'running'
    if (hasRun && container.endedRun !== undefined && container.endedRun === seen.startedAt) return
    const follow: Follow = { isStartedAgain: false }
    this.#active.set(container.containerId, follow)
    void this.#read(container, follow).then(isDone => {
      this.#active.delete(container.containerId)
      if (!isDone) this.#retry(seen)
      else if (follow.isStartedAgain) this.follow({ id: seen.id, owner: seen.owner })
    })
  }

  /** False when it could not be read to its end. */
  async #read(container: KnownContainer, follow: Follow): Promise<boolean> {
    const { runtime, store, writer, log, signal } = this.parts
    try {
      // What has been read is kept before anybody asks from where on to read: then that is known.
      await this.#readOn(container).finally(async () => await writer.kept(container))
      if (signal.aborted) return true
      const state = await runtime.inspect(container.containerId)
      if (state?.status === 'running') follow.isStartedAgain = true
      else if (state !== undefined) await store.noteEnd(container.key, state.startedAt)
      return true
    } catch (error) {
      if (signal.aborted || (isProblem(error) && error.code === 'E_CONTAINER_MISSING')) return true
      log.debug(
        { err: error, containerId: container.containerId },
        'the output of a container could not be read to its end; it is tried again'
      )
      return false
    }
  }

  async #readOn(container: KnownContainer): Promise<void> {
    const { runtime, writer, keptSince, signal } = this.parts
    const { containerId, place } = container
    const opened = await this.#slots.take()
    try {
      const from = place === undefined ? { since: keptSince() } : { after: place }
      const output = runtime.logs(containerId, { follow: true, signal, ...from })
      for await (const batch of output) {
        opened()
        this.#retryPause.reset()
        await writer.add(container, batch)
      }
    } finally {
      opened()
    }
  }

  /** Of an engine that is away all fail together, and are tried again together. */
  #retry(seen: Seen): void {
    this.#failed.set(seen.id, { id: seen.id, owner: seen.owner })
    if (!this.#isRetrying) void this.#retryAll()
  }

  async #retryAll(): Promise<void> {
    const { signal } = this.parts
    this.#isRetrying = true
    await this.#retryPause.pause(signal)
    this.#isRetrying = false
    const failed = this.#failed
    this.#failed = new Map()
    for (const one of failed.values()) if (!signal.aborted) this.follow(one)
  }
}
