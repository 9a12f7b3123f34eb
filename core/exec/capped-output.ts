import { StringDecoder } from 'node:string_decoder'

/** The first bytes of a stream; what comes after is counted as lost. */
export class CappedOutput {
  readonly #chunks: Buffer[] = []
  #room: number
  isTruncated = false

  constructor(maxBytes: number) {
    this.#room = maxBytes
  }

  push(chunk: Buffer): void {
    if (chunk.length > this.#room) this.isTruncated = true
    if (this.#room === 0) return
    // A copy when cut: a slice would keep the whole chunk in memory.
    const kept = chunk.length > this.#room ? Buffer.from(chunk.subarray(0, this.#room)) : chunk
    this.#chunks.push(kept)
    this.#room -= kept.length
  }

  /** Without the half of a character that a cut may have left at the end. */
  text(): string {
    const bytes = Buffer.concat(this.#chunks)
    return this.isTruncated ? new StringDecoder('utf8').write(bytes) : bytes.toString('utf8')
  }
}
