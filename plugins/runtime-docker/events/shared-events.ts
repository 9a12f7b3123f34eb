import { AsyncResource } from 'node:async_hooks'
import type { ContainerEvent } from 'busbar/api/containers'
import { Wakeable } from 'busbar/sdk'
import { maxWaiting, type ReadEvent, type Reading } from './engine-events.js'

/**
 * One stream of the engine for all who follow it, open while anybody does: each event is verified once, whatever number of
 * plugins act on it. Nobody waits for anybody else.
 */
export class SharedEvents {
  readonly #followers = new Set<Follower>()
  #stream: OpenStream | undefined
  /** The stream is nobody's in particular: who happens to be first must not own it. */
  readonly #context = new AsyncResource('SharedEvents')

  /** `open` reads the engine's events until the signal aborts, and keeps account in `Reading`. */
  constructor(private readonly open: (reading: Reading, signal: AbortSignal) => AsyncIterable<ReadEvent>) {}

  /** See `ContainerRuntime.events`. */
  async *follow(signal: AbortSignal): AsyncGenerator<ContainerEvent> {
    if (signal.aborted) return
    this.#stream ??= this.#start()
    const follower = new Follower(this.#stream.reading)
    this.#followers.add(follower)
    try {
      yield* follower.events(signal)
    } finally {
      this.#followers.delete(follower)
      if (this.#followers.size === 0) this.#stop()
    }
  }

  #start(): OpenStream {
    const reading: Reading = { count: 0, isOpen: false }
    const ending = new AbortController()
    const stream = { reading, ending }
    const pass = async (): Promise<void> => {
      for await (const read of this.open(reading, ending.signal))
        if (this.#stream === stream) for (const follower of this.#followers) follower.take(read)
    }
    this.#context.runInAsyncScope(pass).catch((error: unknown) => {
      if (this.#stream !== stream) return
      this.#stream = undefined
      for (const follower of this.#followers) follower.fail(error)
    })
    return stream
  }

  #stop(): void {
    this.#stream?.ending.abort()
    this.#stream = undefined
  }
}

interface OpenStream {
  readonly reading: Reading
  readonly ending: AbortController
}

class Follower {
  #waiting: ContainerEvent[]
  #failure: { readonly error: unknown } | undefined
  readonly #news = new Wakeable()
  /** The engine has been there for this one: only then an outage is news. */
  #knowsEngine: boolean
  /** What was read before is older than this one. */
  readonly #after: number

  constructor(reading: Reading) {
    this.#after = reading.count
    this.#knowsEngine = reading.isOpen
    // It hears of everything from now on, so this is the moment to look; where the engine is away, `resync` comes with it.
    this.#waiting = reading.isOpen ? [{ kind: 'resync' }] : []
  }

  fail(error: unknown): void {
    this.#failure = { error }
    this.#news.wake()
  }

  take({ event, number }: ReadEvent): void {
    if (number <= this.#after) return
    if (this.#waiting.length < maxWaiting) this.#waiting.push(this.#asNews(event))
    else this.#waiting = [{ kind: 'resync' }]
    this.#news.wake()
  }

  async *events(signal: AbortSignal): AsyncGenerator<ContainerEvent> {
    while (true) {
      const batch = this.#waiting
      this.#waiting = []
      for (const event of batch) {
        if (signal.aborted) return
        yield event
      }
      if (this.#waiting.length > 0) continue
      if (this.#failure !== undefined) throw this.#failure.error
      if (signal.aborted) return
      await this.#news.sleep(signal)
    }
  }

  #asNews(event: ContainerEvent): ContainerEvent {
    if (event.kind !== 'resync' || this.#knowsEngine) return event
    this.#knowsEngine = true
    return { kind: 'resync' }
  }
}
