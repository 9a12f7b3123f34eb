import type { Clock, Log } from 'busbar/sdk'
import type { KeptChunk, LogStore } from './log-store.js'
import { RecentChunks } from './recent-chunks.js'
import type { StreamReads } from './stream-reads.js'

/** What is kept is in the database, so that any process can stream it; it is looked at this often. */
const pollMs = 250

interface PollParts {
  readonly store: Pick<LogStore, 'progress'>
  readonly reads: Pick<StreamReads, 'after'>
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
}

/** By source, behind its last line; undefined where it could not be looked at. */
type Found = ReadonlyMap<string, number> | undefined

interface Wait {
  readonly found: Promise<Found>
  readonly tell: (found: Found) => void
}

function newWait(): Wait {
  let tell: (found: Found) => void = () => {}
  const found = new Promise<Found>(resolve => {
    tell = resolve
  })
  return { found, tell }
}

/**
 * Looks at the sources that are streamed: by one query for all of them together, and one more for each piece that is new, however many
 * streams there are. Without a stream nothing is looked at.
 */
export class LogPoll {
  /** By source, those who wait for the next look, or for what this process keeps. */
  #wanted = new Map<string, Wait>()
  #isLooking = false
  /** What the latest look has found. */
  #found = new Map<string, number>()
  #isFailing = false
  /** By source, how many follow it. */
  readonly #followers = new Map<string, number>()
  readonly #recent = new RecentChunks()

  constructor(private readonly parts: PollParts) {}

  /**
   * What is kept from this line on; waits for the next look where there was nothing, which may find nothing. What cannot be read, as the
   * database is away, is not there yet. Undefined where nothing is known of the source.
   */
  async after(sourceId: string, from: number, bytes: number): Promise<readonly KeptChunk[] | undefined> {
    const recent = this.#recent.after(sourceId, from)
    if (recent !== undefined) return recent
    if ((this.#found.get(sourceId) ?? 0) <= from) {
      const found = await this.#wait(sourceId)
      if (found === undefined) return []
      const next = found.get(sourceId)
      if (next === undefined || next <= from) return next === undefined ? undefined : []
    }
    const chunks = this.#recent.after(sourceId, from) ?? (await this.#read(sourceId, from, bytes))
    // They have been removed since: there is nothing to be read before another look.
    if (chunks.length === 0) this.#found.delete(sourceId)
    return chunks
  }

  /** Somebody reads what comes of a source, until what it returns is called. */
  follow(sourceId: string): () => void {
    this.#followers.set(sourceId, (this.#followers.get(sourceId) ?? 0) + 1)
    return () => {
      const left = (this.#followers.get(sourceId) ?? 0) - 1
      if (left > 0) this.#followers.set(sourceId, left)
      else this.#followers.delete(sourceId)
    }
  }

  /**
   * This process itself has kept lines of a source, up to the one before `end`: who waits for them need not wait for the next look, nor for
   * the database where it is known what they are.
   */
  kept(sourceId: string, end: number, chunks: readonly KeptChunk[] | undefined): void {
    if (!this.#followers.has(sourceId) || chunks === undefined) this.#recent.forget(sourceId)
    else this.#recent.add(sourceId, chunks)
    const wait = this.#wanted.get(sourceId)
    if (wait === undefined && !this.#found.has(sourceId)) return
    this.#found.set(sourceId, end)
    this.#wanted.delete(sourceId)
    wait?.tell(new Map([[sourceId, end]]))
  }

  /** From now on this process keeps lines: others may have kept some since it did so last. */
  begins(): void {
    this.#recent.clear()
  }

  async #wait(sourceId: string): Promise<Found> {
    const wait = this.#wanted.get(sourceId) ?? newWait()
    this.#wanted.set(sourceId, wait)
    if (!this.#isLooking) void this.#look()
    return await wait.found
  }

  async #read(sourceId: string, from: number, bytes: number): Promise<readonly KeptChunk[]> {
    try {
      return await this.parts.reads.after(sourceId, { from }, bytes)
    } catch (error) {
      this.#couldNotLook(error)
      return []
    }
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    await this.parts.clock.sleep(pollMs)
    const wanted = this.#wanted
    // Who comes from now on waits for another one.
    this.#wanted = new Map()
    this.#isLooking = false
    const found = await this.#progress([...wanted.keys()])
    for (const { tell } of wanted.values()) tell(found)
  }

  async #progress(sourceIds: readonly string[]): Promise<Found> {
    if (sourceIds.length === 0) return new Map()
    try {
      this.#found = await this.parts.store.progress(sourceIds)
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
