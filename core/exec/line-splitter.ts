import { StringDecoder } from 'node:string_decoder'
import { cutMark } from 'busbar/sdk'

/** A longer line is cut. Its rest is no line: half a secret at its beginning would not be recognised. */
const longestLine = 16 * 1024

/** Bytes in, whole lines out: without line ends, and of a line drawn over (`\r`) only the last state. */
export function lineSplitter(onLine: (line: string) => void) {
  const decoder = new StringDecoder('utf8')
  let line = ''
  let isBegun = false
  let isCut = false
  /** A carriage return at the end of what has come: it ends the line, or the line is drawn over. */
  let isReturned = false

  function begin(): void {
    line = ''
    isCut = isReturned = false
  }

  function append(piece: string): void {
    if (piece === '') return
    isBegun = true
    if (isReturned) begin()
    isReturned = piece.endsWith('\r')
    const end = isReturned ? piece.length - 1 : piece.length
    const text = piece.slice(0, end)
    const from = text.lastIndexOf('\r') + 1
    if (from > 0) {
      line = ''
      isCut = false
    }
    if (isCut) return
    line += text.slice(from)
    if (line.length <= longestLine) return
    isCut = true
    // Never between the two halves of a character.
    line = line.slice(0, longestLine).replace(/[\ud800-\udbff]$/, '')
  }

  function finish(): void {
    onLine(isCut ? line + cutMark : line)
    begin()
    isBegun = false
  }

  function take(text: string): void {
    const lines = text.split('\n')
    const last = lines.pop() ?? ''
    for (const piece of lines) {
      append(piece)
      finish()
    }
    append(last)
  }

  return {
    push(chunk: Buffer): void {
      take(decoder.write(chunk))
    },
    end(): void {
      take(decoder.end())
      if (isBegun) finish()
    }
  }
}
