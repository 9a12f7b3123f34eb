import type { Coding } from './content-coding.js'

/** An answer as it was sent, for whoever asks the same while its tag holds. */
export interface KeptAnswer {
  readonly tag: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Buffer
  /** The same bytes in the content codings that were asked for. */
  readonly coded: Partial<Record<Coding, Buffer>>
}

/** Of all that may be kept, so that one answer does not push out all others. */
const largestShare = 1 / 8

/** The answers that were asked for last, up to so many bytes. */
export class KeptAnswers {
  /** The one that was used last is the last. */
  readonly #answers = new Map<string, KeptAnswer>()
  #bytes = 0

  constructor(readonly capacity: number) {}

  get bytes(): number {
    return this.#bytes
  }

  get(key: string, tag: string): KeptAnswer | undefined {
    const answer = this.#answers.get(key)
    if (answer?.tag !== tag) return undefined
    this.#answers.delete(key)
    this.#answers.set(key, answer)
    return answer
  }

  put(key: string, answer: KeptAnswer): void {
    this.#drop(key)
    const size = sizeOf(key, answer)
    if (size > this.capacity * largestShare) return
    this.#answers.set(key, answer)
    this.#bytes += size
    for (const oldest of this.#answers.keys()) {
      if (this.#bytes <= this.capacity) return
      this.#drop(oldest)
    }
  }

  /** Keeps a coding of an answer too, if that is still kept. */
  addCoding(key: string, answer: KeptAnswer, coding: Coding, coded: Buffer): void {
    if (this.#answers.get(key) === answer)
      this.put(key, { ...answer, coded: { ...answer.coded, [coding]: coded } })
  }

  #drop(key: string): void {
    const answer = this.#answers.get(key)
    if (answer === undefined) return
    this.#answers.delete(key)
    this.#bytes -= sizeOf(key, answer)
  }
}

/** What an entry takes beside its bytes. */
const entryBytes = 500

const sizeOf = (key: string, { bytes, coded }: KeptAnswer): number =>
  entryBytes + 2 * key.length + [bytes, ...Object.values(coded)].reduce((sum, { length }) => sum + length, 0)
