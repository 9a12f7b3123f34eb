import { requestDurationBounds } from 'busbar/sdk'
import type { RouteRecord } from '../declarations/records.js'

/** What has been answered on one route. */
interface RouteCounts {
  /** By status. */
  readonly answers: ReadonlyMap<number, number>
  /** How many took how long: one for each of `requestDurationBounds`, and one for what took longer than all. */
  readonly durations: readonly number[]
  /** All of these together. */
  readonly seconds: number
}

interface Counting extends RouteCounts {
  readonly answers: Map<number, number>
  readonly durations: number[]
  seconds: number
}

const none = (): Counting => ({
  answers: new Map(),
  durations: new Array<number>(requestDurationBounds.length + 1).fill(0),
  seconds: 0
})

/**
 * How many requests were answered by which status, and how long they took. Counted by the record of their route, so that what
 * a plugin no longer serves is forgotten with it. It is asked for every request: a look-up and three additions.
 */
export class RequestCounts {
  readonly #routes = new WeakMap<RouteRecord, Counting>()
  readonly #unrouted = new Map<number, number>()

  /** Those that were refused before a route was found. */
  get unrouted(): ReadonlyMap<number, number> {
    return this.#unrouted
  }

  /** Undefined for a route that has not been asked for. */
  of(record: RouteRecord): RouteCounts | undefined {
    return this.#routes.get(record)
  }

  /** `seconds`: undefined where it says nothing, as of an event stream. */
  add(record: RouteRecord, status: number, seconds: number | undefined): void {
    let counts = this.#routes.get(record)
    if (counts === undefined) {
      counts = none()
      this.#routes.set(record, counts)
    }
    increment(counts.answers, status)
    if (seconds === undefined) return
    const at = placeOf(seconds)
    counts.durations[at] = (counts.durations[at] ?? 0) + 1
    counts.seconds += seconds
  }

  addUnrouted(status: number): void {
    increment(this.#unrouted, status)
  }
}

function placeOf(seconds: number): number {
  let at = 0
  while (seconds > (requestDurationBounds[at] ?? Infinity)) at++
  return at
}

const increment = (counts: Map<number, number>, status: number): void => {
  counts.set(status, (counts.get(status) ?? 0) + 1)
}
