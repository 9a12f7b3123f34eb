const escapeByte = 0x1b
const bell = 0x07
/** CAN and SUB break off a sequence. */
const cancels = [0x18, 0x1a]
/** Of a longer one no more is looked at: none that means something here is as long. */
const longestKept = 64

type State = 'text' | 'escape' | 'control' | 'string' | 'string-escape'

/** A sequence of control characters (ECMA-48), by its place in what was read. */
interface Sequence {
  /** Where it begins; less than 0 where that was in an earlier piece. */
  readonly start: number
  /** Behind its last byte. */
  readonly end: number
  /** Its text, or the beginning of that; of one that began in an earlier piece too. */
  readonly text: string
}

/**
 * Finds escape sequences in what a terminal is sent, piece by piece. Text between them costs a search, and a sequence one step
 * for each byte of it.
 */
export class EscapeReader {
  #state: State = 'text'
  #text = ''

  /** False in the middle of a sequence. */
  get isAtRest(): boolean {
    return this.#state === 'text'
  }

  copy(): EscapeReader {
    const copy = new EscapeReader()
    copy.#state = this.#state
    copy.#text = this.#text
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
      // What breaks one off begins another one.
      if (byte === escapeByte && this.#state !== 'string') {
        start = at
        this.#begin()
        continue
      }
      if (this.#text.length < longestKept) this.#text += String.fromCharCode(byte)
      this.#state = nextState(this.#state, byte)
      if (this.#state === 'text') yield { start, end: at + 1, text: this.#text }
    }
  }

  #begin(): void {
    this.#state = 'escape'
    this.#text = '\u001b'
  }
}

/** `text` when the byte is the last one of its sequence. */
function nextState(state: Exclude<State, 'text'>, byte: number): State {
  if (cancels.includes(byte)) return 'text'
  switch (state) {
    case 'escape':
      if (byte === 0x5b) return 'control'
      if ('P]X^_'.includes(String.fromCharCode(byte))) return 'string'
      // Further bytes of the kind of `ESC ( B` follow.
      return byte < 0x30 ? 'escape' : 'text'
    case 'control':
      return byte >= 0x40 && byte <= 0x7e ? 'text' : 'control'
    case 'string':
      return byte === bell ? 'text' : byte === escapeByte ? 'string-escape' : 'string'
    case 'string-escape':
      // `ESC \` ends it. Anything else does too, as terminals have it.
      return 'text'
  }
}
