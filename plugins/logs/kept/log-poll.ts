import type { Clock, Log } from 'busbar/sdk'
import type { KeptChunk, LogStore } from './log-store.js'
import type { StreamReads } from './stream-reads.js'

/** What is kept is in the database, so that any process can stream it; it is looked at this often. */
const pollMs = 250

interface PollParts {
  readonly store: Pick<LogStore, 'progress'>
  readonly reads: Pick<StreamReads, 'after'>
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
}

/**
 * Looks at the sources that are streamed: by one query for all of them together, and one more for each piece that is new, however many
 * streams there are. Without a stream nothing is looked at.
 */
export class LogPoll {
  #wanted = new Set<string>()
  #next: Promise<ReadonlyMap<string, number> | undefined> | undefined
  /** What the latest look has found. */
  #found = new Map<string, number>()
  #isFailing = false
  #hurry = new AbortController()

  constructor(private readonly parts: PollParts) {}

  /**
   * What is kept from this line on; waits for the next look where there was nothing, which may find nothing. What cannot be read, as the
   * database is away, is not there yet. Undefined where nothing is known of the source.
   */
  async after(sourceId: string, from: number, bytes: number): Promise<readonly KeptChunk[] | undefined> {
    if ((this.#found.get(sourceId) ?? 0) <= from) {
      this.#wanted.add(sourceId)
      this.#next ??= this.#look()
      const found = await this.#next
      if (found === undefined) return []
      const next = found.get(sourceId)
      if (next === undefined || next <= from) return next === undefined ? undefined : []
    }
    const chunks = await this.#read(sourceId, from, bytes)
    // They have been removed since: there is nothing to be read before another look.
    if (chunks.length === 0) this.#found.delete(sourceId)
    return chunks
  }

  /** This process itself has kept lines of a source, up to the one before `end`: who waits for them need not wait for the next look. */
  kept(sourceId: string, end: number): void {
    const isWaitedFor = this.#wanted.has(sourceId)
    if (isWaitedFor || this.#found.has(sourceId)) this.#found.set(sourceId, end)
    if (isWaitedFor) this.#hurry.abort(null)
  }

  async #read(sourceId: string, from: number, bytes: number): Promise<readonly KeptChunk[]> {
    try {
      return await this.parts.reads.after(sourceId, { from }, bytes)
    } catch (error) {
      this.#couldNotLook(error)
      return []
    }
  }

  /** Undefined where it was not possible. */
  async #look(): Promise<ReadonlyMap<string, number> | undefined> {
    this.#hurry = new AbortController()
    await this.parts.clock.sleep(pollMs, this.#hurry.signal).catch(() => {})
    const ids = [...this.#wanted]
    // Who comes from now on waits for another one.
    this.#wanted = new Set()
    this.#next = undefined
    try {
      this.#found = await this.parts.store.progress(ids)
      this.#isFailing = false
      return this.#found
    } catch (error) {
      this.#couldNotLook(error)
      return undefined
    }
  }

  /** Said once for each outage. */
  #couldNotLook(error: unknown): void {
    if (!this.#isFailing)
      this.parts.log.warn({ err: error }, 'lines cannot be read for streams; they come later')
    this.#isFailing = true
    this.#found = new Map()
  }
}
