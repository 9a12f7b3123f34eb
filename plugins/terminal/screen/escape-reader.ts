const escapeByte = 0x1b
const bell = 0x07
/** CAN and SUB break off a sequence. */
const cancels = [0x18, 0x1a]
const backslash = 0x5c
/** Of a longer one no more is looked at: none that a program draws with is as long. */
const longestKept = 4096

type State = 'text' | 'escape' | 'intermediate' | 'control' | 'string' | 'string-escape'

/** A sequence of control characters (ECMA-48), by its place in what was read. */
interface Sequence {
  /** Where it begins; less than 0 where that was in an earlier piece. */
  readonly start: number
  /** Behind its last byte. */
  readonly end: number
  /** Its text, or the beginning of that; of one that began in an earlier piece too. Without what terminals take out of it. */
  readonly text: string
  /**
   * What no program writes, and what terminals and readers may take in different ways: one that is very long, that holds
   * other control characters, or that another one has broken off.
   */
  readonly isOdd: boolean
}

/**
 * Finds escape sequences in what a terminal is sent, piece by piece. Text between them costs a search, and a sequence one step
 * for each byte of it.
 */
export class EscapeReader {
  #state: State = 'text'
  #text = ''
  #isOdd = false

  /** False in the middle of a sequence. */
  get isAtRest(): boolean {
    return this.#state === 'text'
  }

  copy(): EscapeReader {
    const copy = new EscapeReader()
    copy.#state = this.#state
    copy.#text = this.#text
    copy.#isOdd = this.#isOdd
    return copy
  }

  *read(bytes: Buffer): Generator<Sequence, void> {
    let start = -1
    for (let at = 0; at < bytes.length; at++) {
      if (this.#state === 'text') {
        at = bytes.indexOf(escapeByte, at)
        if (at < 0) return
        start = at
        this.#begin()
        continue
      }
      const byte = bytes[at] ?? 0
      // What breaks one off begins another one: also an escape in a string, where no backslash ends that with it.
      if (this.#state === 'string-escape' && byte !== backslash) {
        yield { start, end: at - 1, text: this.#text, isOdd: true }
        start = at - 1
        this.#begin()
      }
      if (byte === escapeByte && this.#state !== 'string') {
        yield { start, end: at, text: this.#text, isOdd: true }
        start = at
        this.#begin()
        continue
      }
      this.#note(byte)
      this.#state = nextState(this.#state, byte)
      if (this.#state === 'text') yield { start, end: at + 1, text: this.#text, isOdd: this.#isOdd }
    }
  }

  /** Terminals obey a control character within a sequence, and read on as if it had not been there. */
  #note(byte: number): void {
    const isInString = this.#state === 'string' || this.#state === 'string-escape'
    if (!isInString && (byte < 0x20 || byte > 0x7e)) this.#isOdd = true
    else if (this.#text.length < longestKept) this.#text += String.fromCharCode(byte)
    else this.#isOdd = true
  }

  #begin(): void {
    this.#state = 'escape'
    this.#text = '\u001b'
    this.#isOdd = false
  }
}

/** `text` when the byte is the last one of its sequence. */
function nextState(state: Exclude<State, 'text'>, byte: number): State {
  if (cancels.includes(byte)) return 'text'
  switch (state) {
    case 'escape':
      if (byte === 0x5b) return 'control'
      if ('P]X^_'.includes(String.fromCharCode(byte))) return 'string'
      if (byte < 0x20 || byte === 0x7f) return 'escape'
      return byte < 0x30 ? 'intermediate' : 'text'
    case 'intermediate':
      // As in `ESC ( B`.
      return byte < 0x30 || byte === 0x7f ? 'intermediate' : 'text'
    case 'control':
      return byte >= 0x40 && byte <= 0x7e ? 'text' : 'control'
    case 'string':
      return byte === bell ? 'text' : byte === escapeByte ? 'string-escape' : 'string'
    case 'string-escape':
      return 'text'
  }
}
