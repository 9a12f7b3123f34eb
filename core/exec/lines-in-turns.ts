import type { Readable } from 'node:stream'
import { Turns } from 'busbar/sdk'
import { lineSplitter } from './line-splitter.js'

/** So much is split into lines before other work gets a turn: some thousand lines when they are empty. */
const pieceBytes = 4096

/**
 * Yields the lines of a stream, in turns with other readers: a program prints faster than its output is read. While they
 * are passed on, nothing more is read, so that the program waits.
 */
export class LinesInTurns {
  readonly #lines: ReturnType<typeof lineSplitter>
  readonly #turns = new Turns()
  #work: Promise<void> = Promise.resolve()
  #waiting = 0
  #hasCome = false

  constructor(
    private readonly stream: Readable,
    onLine: (line: string) => void
  ) {
    this.#lines = lineSplitter(onLine)
  }

  /** Whether something has come since this was asked before, or is still to be passed on. */
  isComing(): boolean {
    const isComing = this.#hasCome || this.#waiting > 0
    this.#hasCome = false
    return isComing
  }

  push(chunk: Buffer): void {
    this.#waiting++
    this.#hasCome = true
    // Node reads on by itself when the program has ended: what comes then waits here.
    this.stream.pause()
    this.#work = this.#work.then(async () => {
      await this.#handOn(chunk)
      if (--this.#waiting === 0) this.stream.resume()
    })
  }

  /** After the last chunk. */
  async end(): Promise<void> {
    await this.#work
    this.#lines.end()
  }

  async #handOn(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      if (this.#turns.isOver) await this.#turns.pass()
      this.#lines.push(chunk.subarray(at, at + pieceBytes))
    }
  }
}
