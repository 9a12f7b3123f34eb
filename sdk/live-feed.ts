import type { Clock, Log } from './kernel.js'

interface LiveFeedParts<Place, Row> {
  /** What comes behind each of these places, in their order; of each no more than `mostAtOnce`. */
  readonly after: (places: readonly Place[], mostAtOnce: number) => Promise<ReadonlyArray<readonly Row[]>>
  /** What a reader is given at a time: what they do not take stays in the database. */
  readonly mostAtOnce: number
  /** For the log: `new requests`. */
  readonly what: string
  readonly clock: Pick<Clock, 'every'>
  readonly log: Pick<Log, 'warn'>
}

interface Waiting<Place, Row> {
  readonly place: Place
  readonly resolve: (found: readonly Row[] | null) => void
}

/** Of one statement. */
const mostPlaces = 1_000
/** A process may have missed that it was told. */
const lookAgainMs = 15_000

/**
 * What is stored, for all streams of this process: they wait here, and one statement looks for as many as are to be looked for. A
 * reader who takes their time is not waiting, and holds no more than what they were given.
 */
export class LiveFeed<Place, Row> {
  readonly #waiting = new Set<Waiting<Place, Row>>()
  /** Who is to be looked for: what they wait for may be there. */
  readonly #due = new Set<Waiting<Place, Row>>()
  #isLooking = false
  #isClosed = false
  readonly #stop: () => void

  constructor(private readonly parts: LiveFeedParts<Place, Row>) {
    this.#stop = parts.clock.every(lookAgainMs, () => {
      this.wake(() => true)
    })
  }

  /** How many wait. */
  get readers(): number {
    return this.#waiting.size
  }

  /** What comes behind the place, in order, once there is something; null when the signal aborts, and when there is an end to it. */
  async next(place: Place, signal: AbortSignal): Promise<readonly Row[] | null> {
    if (signal.aborted || this.#isClosed) return null
    return await new Promise(resolve => {
      const waiting: Waiting<Place, Row> = {
        place,
        resolve: found => {
          this.#waiting.delete(waiting)
          this.#due.delete(waiting)
          signal.removeEventListener('abort', leave)
          resolve(found)
        }
      }
      const leave = (): void => {
        waiting.resolve(null)
      }
      signal.addEventListener('abort', leave)
      this.#waiting.add(waiting)
      // What came while the reader took what was before.
      this.#due.add(waiting)
      this.#look()
    })
  }

  /** Something has come for those who wait at such places. */
  wake(isMeant: (place: Place) => boolean): void {
    for (const waiting of this.#waiting) if (isMeant(waiting.place)) this.#due.add(waiting)
    this.#look()
  }

  /** There is nothing to come at such places any more. */
  end(isMeant: (place: Place) => boolean): void {
    for (const waiting of [...this.#waiting]) if (isMeant(waiting.place)) waiting.resolve(null)
  }

  close(): void {
    this.#stop()
    this.#isClosed = true
    this.end(() => true)
  }

  #look(): void {
    if (this.#isLooking || this.#due.size === 0) return
    this.#isLooking = true
    void this.#lookForAll().finally(() => {
      this.#isLooking = false
      // Between its last look and now.
      this.#look()
    })
  }

  async #lookForAll(): Promise<void> {
    const { after, mostAtOnce, what, log } = this.parts
    while (this.#due.size > 0) {
      const looked = [...this.#due].slice(0, mostPlaces)
      for (const waiting of looked) this.#due.delete(waiting)
      try {
        const found = await after(
          looked.map(({ place }) => place),
          mostAtOnce
        )
        for (const [at, rows] of found.entries()) if (rows.length > 0) looked[at]?.resolve(rows)
      } catch (error) {
        // They wait on: the database is asked again in a while.
        log.warn({ err: error }, `${what} could not be looked for`)
      }
    }
  }
}
