import type { LogLine } from 'busbar/api/containers'
import { kindOf } from '../kept/chunk.js'
import { ChunkBuilder, type RawChunk } from '../kept/chunk-builder.js'
import type { LineTimes } from '../kept/line-time.js'
import type { KnownContainer } from './collect-store.js'
import { levelOfLine } from './level.js'

/** Of one container by one statement, so that others have room as well. */
const mostBytes = 1024 * 1024
/** What a line takes in memory besides its text. */
const bytesOfLine = 150

/** Whole batches of one container, as nothing but their ends has a place. */
export interface Portion {
  readonly chunks: readonly RawChunk[]
  readonly lines: number
  readonly bytes: number
  /** Behind the last of its lines. */
  readonly place: string
}

/** A line that the next one of its stream goes on with. */
interface Begun {
  readonly time: string
  readonly level: ReturnType<typeof levelOfLine>
}

/** What is to be kept of one container: made into chunks as it comes. */
export class WaitingLines {
  /** Those that are full. */
  #portions: Portion[] = []
  readonly #chunks = new ChunkBuilder()
  #lines = 0
  #bytes = 0
  #place = ''
  #bytesInAll = 0
  readonly #begun = new Map<string, Begun>()

  constructor(
    readonly container: KnownContainer,
    private readonly times: LineTimes
  ) {}

  /** About what they take in memory. */
  get bytes(): number {
    return this.#bytesInAll
  }

  get isEmpty(): boolean {
    return this.#portions.length === 0 && this.#lines === 0
  }

  /** A batch, with the place behind it. */
  add(lines: readonly LogLine[], place: string): void {
    for (const line of lines) this.#take(line)
    this.#place = place
    if (this.#bytes >= mostBytes) this.#close()
  }

  /** What is to be kept next. It stays until it is released. */
  next(): Portion | undefined {
    if (this.#portions.length === 0 && this.#lines > 0) this.#close()
    return this.#portions[0]
  }

  release(portion: Portion): void {
    this.#portions = this.#portions.filter(one => one !== portion)
    this.#bytesInAll -= portion.bytes
  }

  #take({ stream, time, text, continues }: LogLine): void {
    const begun = this.#begun.size === 0 ? undefined : this.#begun.get(stream)
    const level = begun?.time === time ? begun.level : levelOfLine(text)
    if (continues === true) this.#begun.set(stream, { time, level })
    else if (begun !== undefined) this.#begun.delete(stream)
    const textBytes = Buffer.byteLength(text)
    this.#chunks.add(this.times.read(time), kindOf(level, stream), text, textBytes)
    const bytes = textBytes + bytesOfLine
    this.#lines++
    this.#bytes += bytes
    this.#bytesInAll += bytes
  }

  #close(): void {
    this.#portions.push({
      chunks: this.#chunks.take(),
      lines: this.#lines,
      bytes: this.#bytes,
      place: this.#place
    })
    this.#lines = 0
    this.#bytes = 0
  }
}
