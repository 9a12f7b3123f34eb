import { type Chunk, longestSpanMs, mostBytes, mostLines, stepOf } from './chunk.js'
import type { LineTime } from './line-time.js'

/** Lines as they have come, before anything is taken out of them. */
export type RawChunk = Omit<Chunk, 'bytes'>

/** Makes chunks of lines as they come, in as few as their limits allow. Of a line nothing is kept but what goes into its chunk. */
export class ChunkBuilder {
  #chunks: RawChunk[] = []
  #messages: string[] = []
  /** Of the open chunk, in UTF-8. */
  #bytes = 0
  /** All but the first: that counts from the earliest, which is not known before the end. */
  #steps: string[] = []
  #firstMs = 0
  #firstNanos = 0
  #lastMs = 0
  #lastNanos = 0
  #earliest = 0
  #latest = 0
  #mask = 0
  /** Lines of one kind mostly follow each other. */
  #kinds = ''
  #kind = 0
  #ofKind = 0

  /** `bytes`: of the message, in UTF-8. */
  add({ ms, nanos }: LineTime, kind: number, message: string, bytes: number): void {
    if (this.#messages.length > 0) {
      const spanMs = Math.max(this.#latest, ms) - Math.min(this.#earliest, ms)
      if (this.#messages.length >= mostLines || this.#bytes + bytes + 1 > mostBytes || spanMs > longestSpanMs)
        this.#close()
    }
    if (this.#messages.length === 0) this.#begin(ms, nanos, kind)
    else {
      this.#steps.push(stepOf(ms - this.#lastMs, nanos - this.#lastNanos))
      if (ms < this.#earliest) this.#earliest = ms
      if (ms > this.#latest) this.#latest = ms
    }
    this.#lastMs = ms
    this.#lastNanos = nanos
    if (kind !== this.#kind) this.#endKind(kind)
    this.#ofKind++
    this.#mask |= 1 << kind
    this.#messages.push(message)
    this.#bytes += bytes + 1
  }

  /** All that has come since the last call. */
  take(): RawChunk[] {
    if (this.#messages.length > 0) this.#close()
    const chunks = this.#chunks
    this.#chunks = []
    return chunks
  }

  #begin(ms: number, nanos: number, kind: number): void {
    this.#firstMs = ms
    this.#firstNanos = nanos
    this.#earliest = ms
    this.#latest = ms
    this.#kind = kind
  }

  #endKind(next: number): void {
    this.#kinds += String(this.#kind).repeat(this.#ofKind)
    this.#kind = next
    this.#ofKind = 0
  }

  #close(): void {
    this.#endKind(0)
    const first = stepOf(this.#firstMs - this.#earliest, this.#firstNanos)
    this.#chunks.push({
      lines: this.#messages.length,
      beginsAt: this.#earliest,
      endsAt: this.#latest,
      mask: this.#mask,
      times: this.#steps.length === 0 ? first : `${first} ${this.#steps.join(' ')}`,
      kinds: this.#kinds,
      text: this.#messages.join('\n')
    })
    this.#messages = []
    this.#steps = []
    this.#bytes = 0
    this.#mask = 0
    this.#kinds = ''
  }
}
