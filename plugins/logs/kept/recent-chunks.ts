import type { KeptChunk } from './log-store.js'

/** Of all sources, in characters. */
const mostLength = 4 * 1024 * 1024
/** Who reads as fast as lines come has them by then. */
const holdMs = 1000

interface Recent {
  readonly sourceId: string
  /** Behind the chunk of the source before it. */
  readonly after: number
  /** As readers are given it: they share what is made of it. */
  readonly piece: readonly [KeptChunk]
}

/**
 * What this process itself has kept just now of sources that somebody follows here: whoever keeps up need not have it read from the
 * database. It is held for a moment, and has a limit; who is behind reads what is kept.
 */
export class RecentChunks {
  readonly #bySource = new Map<string, Recent[]>()
  /** Behind the last chunk of each source that is held. */
  readonly #ends = new Map<string, number>()
  /** In the order in which they came. */
  #all: Recent[] = []
  #length = 0
  #letGo: NodeJS.Timeout | undefined

  /** All that has been kept of the source since the last call. */
  add(sourceId: string, chunks: readonly KeptChunk[]): void {
    const own = this.#bySource.get(sourceId) ?? []
    this.#bySource.set(sourceId, own)
    for (const chunk of chunks) {
      const recent: Recent = {
        sourceId,
        after: this.#ends.get(sourceId) ?? chunk.ordinal,
        piece: [chunk]
      }
      this.#ends.set(sourceId, chunk.ordinal + chunk.lines)
      own.push(recent)
      this.#all.push(recent)
      this.#length += lengthOf(chunk)
    }
    this.#shorten()
    clearTimeout(this.#letGo)
    this.#letGo = setTimeout(() => {
      this.clear()
    }, holdMs).unref()
  }

  /** The next chunk of a source for who has read up to there; undefined where that is not known here. */
  after(sourceId: string, from: number): readonly KeptChunk[] | undefined {
    return this.#bySource
      .get(sourceId)
      ?.find(({ after, piece: [chunk] }) => after <= from && from <= chunk.ordinal)?.piece
  }

  /** Further chunks of it may have been kept, and are not known here. */
  forget(sourceId: string): void {
    this.#bySource.delete(sourceId)
    this.#ends.delete(sourceId)
  }

  /** The same of all sources. */
  clear(): void {
    this.#bySource.clear()
    this.#ends.clear()
    this.#all = []
    this.#length = 0
  }

  #shorten(): void {
    let count = 0
    while (this.#length > mostLength) {
      const recent = this.#all[count++]
      if (recent === undefined) break
      this.#length -= lengthOf(recent.piece[0])
      const own = this.#bySource.get(recent.sourceId)
      if (own?.[0] === recent) own.shift()
    }
    this.#all = this.#all.slice(count)
  }
}

const lengthOf = ({ text, times, kinds }: KeptChunk): number => text.length + times.length + kinds.length
