import type { Clock } from 'busbar/sdk'
import { type HostPoint, type HostReading, pointOf } from './host-reading.js'
import type { HostSource } from './host-source.js'

const everyMs = 1000
/** What was measured within that time is now. */
const currentMs = 2 * everyMs
/** Long enough to tell how busy processors are. */
const shortestMs = 250

interface HostSamplerParts {
  readonly source: HostSource
  readonly clock: Clock
}

/** Reads the machine once a second for all who follow it, and not at all while nobody does. */
export class HostSampler {
  readonly #followers = new Set<(point: HostPoint) => void>()
  #stop: (() => void) | undefined
  #latest: { readonly point: HostPoint; readonly madeAt: number } | undefined

  constructor(private readonly parts: HostSamplerParts) {}

  get isRunning(): boolean {
    return this.#stop !== undefined
  }

  /** Gives a point a second, the first one after a second; returns how to stop. */
  follow(give: (point: HostPoint) => void): () => void {
    // Of its own: one that follows twice is told twice.
    const follower = (point: HostPoint): void => {
      give(point)
    }
    this.#followers.add(follower)
    this.#stop ??= this.#start()
    return () => {
      this.#followers.delete(follower)
      if (this.#followers.size > 0) return
      this.#stop?.()
      this.#stop = undefined
    }
  }

  /** What it uses now: the latest point while somebody follows, else measured in a moment. */
  async current(): Promise<HostPoint> {
    const { source, clock } = this.parts
    const latest = this.#latest
    if (latest !== undefined && clock.elapsed() - latest.madeAt < currentMs) return latest.point
    const before = await source.read()
    await clock.sleep(shortestMs)
    const point = pointOf(before, await source.read(), clock.now())
    if (!this.isRunning) source.close()
    return point
  }

  #start(): () => void {
    const { source, clock } = this.parts
    // A point is what has changed since the reading before.
    let before: Promise<HostReading> = source.read()
    let isOver = false
    const stop = clock.every(everyMs, async () => {
      const [earlier, now] = [await before, await source.read()]
      before = Promise.resolve(now)
      if (isOver) return
      const point = pointOf(earlier, now, clock.now())
      this.#latest = { point, madeAt: clock.elapsed() }
      for (const give of [...this.#followers]) give(point)
    })
    return () => {
      isOver = true
      stop()
      source.close()
    }
  }
}
