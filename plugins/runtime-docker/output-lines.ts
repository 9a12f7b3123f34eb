import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { cutMark, Turns } from 'busbar/sdk'

/** A longer line is cut: it is a printed file, not something to read. */
const maxLineLength = 16_384

// Everything a terminal would not show and PostgreSQL may not store; tab and escape (colours) stay.
const unprintable = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f]/g

/** So much is split into lines before other work gets a turn: some thousand lines when they are empty. */
const pieceLength = 4096

/**
 * Puts lines together from pieces of output, and holds no more than one line of bounded length. A line that
 * a program overwrites with carriage returns (a progress bar) is what stands there in the end.
 */
export class OutputLines {
  #pending = ''
  #isCut = false
  readonly #turns = new Turns()

  constructor(private readonly onLine: (line: string) => void) {}

  write(text: string): void {
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      this.#append(text.slice(start, end))
      this.#finish()
      start = end + 1
    }
    this.#append(text.slice(start))
  }

  /** The same; others have their turn between its lines. */
  async writeInTurns(text: string): Promise<void> {
    for (let at = 0; at < text.length; at += pieceLength) {
      if (this.#turns.isOver) await this.#turns.pass()
      this.write(text.slice(at, at + pieceLength))
    }
  }

  /** The last line need not end in a newline. */
  end(): void {
    if (this.#pending !== '') this.#finish()
  }

  #append(piece: string): void {
    const room = maxLineLength - this.#pending.length
    const overwritten = piece.lastIndexOf('\r', piece.length - 2)
    if (overwritten >= 0) {
      this.#isCut = false
      this.#pending = ''
      this.#append(piece.slice(overwritten + 1))
    } else if (piece.length > room) {
      this.#isCut = true
      this.#pending += piece.slice(0, room)
    } else {
      // A carriage return at the end of the last piece was no end of the line after all.
      const isOverwrite = this.#pending.endsWith('\r') && piece !== ''
      this.#pending = isOverwrite ? piece : this.#pending + piece
    }
  }

  #finish(): void {
    const line = this.#pending.replace(unprintable, '')
    this.onLine(this.#isCut ? line + cutMark : line)
    this.#pending = ''
    this.#isCut = false
  }
}

/** dockerode answers with the response itself, but does not promise it. */
export const asReadable = (stream: NodeJS.ReadableStream): Readable =>
  stream instanceof Readable ? stream : new Readable().wrap(stream)

/** An event longer than this is not one of the engine's. */
const maxEventLength = 4 * 1024 * 1024

/** The events of a stream of JSON lines, one at a time and in turns with others; nothing is kept. */
export async function* jsonLines(stream: Readable): AsyncGenerator<Readonly<Record<string, unknown>>> {
  stream.setEncoding('utf8')
  const event = new BoundedText(maxEventLength)
  const turns = new Turns()
  for await (const chunk of stream) {
    const text = String(chunk)
    let start = 0
    // Only what is new is searched: an event may come in very many pieces.
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      event.add(text.slice(start, end))
      // Very many may have come already, and of those no step waits for anything.
      if (turns.isOver) await turns.pass()
      const value = parseObject(event.take())
      if (value !== undefined) yield value
      start = end + 1
    }
    event.add(text.slice(start))
  }
  const last = parseObject(event.take())
  if (last !== undefined) yield last
}

/** Pieces of a text that is dropped as a whole once it is too long. */
class BoundedText {
  #pieces: string[] = []
  #length = 0

  constructor(private readonly longest: number) {}

  add(piece: string): void {
    this.#length += piece.length
    if (this.#length > this.longest) this.#pieces = []
    else if (piece !== '') this.#pieces.push(piece)
  }

  /** Empty when it was too long. */
  take(): string {
    const text = this.#pieces.join('')
    this.#pieces = []
    this.#length = 0
    return text
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  if (text.trim() === '') return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

const frameHeaderLength = 8

/** The engine keeps a longer line in pieces of this many bytes, and counts pieces where it is asked for the last lines. */
const keptPieceBytes = 16 * 1024
/** Where a character lay across the border of two such pieces, the engine has kept nothing of it. */
const brokenEnd = /\ufffd{1,3}$/

/**
 * The lines in the last of a container's output, in the order they were written by either stream. Where the first of a
 * stream may have begun earlier, it says so: not where fewer pieces came than were asked for.
 */
export function containerLines(output: Buffer, hasTerminal: boolean, asked = 0): string[] {
  const lines: string[] = []
  const firsts: number[] = []
  let pieces = 0
  const streams = new Map<number, { readonly lines: OutputLines; readonly decoder: StringDecoder }>()
  const open = (): OutputLines => {
    let isFirst = true
    return new OutputLines(line => {
      if (isFirst) firsts.push(lines.length)
      isFirst = false
      lines.push(line)
    })
  }
  const write = (stream: number, bytes: Buffer): void => {
    const target = streams.get(stream) ?? { lines: open(), decoder: new StringDecoder('utf8') }
    streams.set(stream, target)
    // A character, of a secret perhaps, may lie across the border of two pieces.
    const text = target.decoder.write(bytes)
    const isBroken = bytes.length >= keptPieceBytes && brokenEnd.test(text)
    target.lines.write(isBroken ? text.replace(brokenEnd, cutMark) : text)
    pieces++
  }
  if (hasTerminal) {
    write(1, output)
  } else {
    for (let at = 0; at + frameHeaderLength <= output.length; ) {
      const length = output.readUInt32BE(at + 4)
      const body = at + frameHeaderLength
      write(output[at] ?? 1, output.subarray(body, body + length))
      at = body + length
    }
  }
  for (const { lines: target, decoder } of streams.values()) {
    target.write(decoder.end())
    target.end()
  }
  // How many pieces came by way of a terminal cannot be seen.
  const mayHaveBegun = output.length >= keptPieceBytes && (hasTerminal || pieces >= asked)
  return mayHaveBegun ? lines.map((line, index) => (firsts.includes(index) ? cutMark + line : line)) : lines
}
