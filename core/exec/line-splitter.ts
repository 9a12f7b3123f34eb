import { StringDecoder } from 'node:string_decoder'

/** A longer line is handed on in pieces of this many characters. */
const longestLine = 16 * 1024

/** Bytes in, whole lines out: without line ends, and of a line drawn over (`\r`) only the last state. */
export function lineSplitter(onLine: (line: string) => void) {
  const decoder = new StringDecoder('utf8')
  let rest = ''

  /** Hands on what is too long in pieces; what is left is short enough. */
  function shorten(text: string): string {
    let from = 0
    while (text.length - from > longestLine) {
      // Never between the two halves of a character.
      const last = text.charCodeAt(from + longestLine - 1)
      const end = from + (last >= 0xd800 && last <= 0xdbff ? longestLine - 1 : longestLine)
      onLine(text.slice(from, end))
      from = end
    }
    return text.slice(from)
  }

  function emit(line: string): void {
    const text = shorten(line).replace(/\r$/, '')
    onLine(text.slice(text.lastIndexOf('\r') + 1))
  }

  function take(text: string): void {
    const lines = (rest + text).split('\n')
    const last = lines.pop() ?? ''
    lines.forEach(emit)
    rest = shorten(last)
  }

  return {
    push(chunk: Buffer): void {
      take(decoder.write(chunk))
    },
    end(): void {
      take(decoder.end())
      if (rest !== '') emit(rest)
    }
  }
}
