import type { Readable } from 'node:stream'
import { outputFrames } from '../output-frames.js'

/** A number, and whatever a program of the container writes between: it may, as one of the same user. */
const longestLine = 1000

/** The lines that a supervisor writes; ends with its output, and where a line is none of its. */
export async function* supervisorAnswers(stream: Readable): AsyncGenerator<string, void> {
  let pending = ''
  for await (const { stream: name, text } of outputFrames(stream, false)) {
    if (name !== 'stdout') continue
    pending += text
    for (let end = pending.indexOf('\n'); end >= 0; end = pending.indexOf('\n')) {
      yield pending.slice(0, end)
      pending = pending.slice(end + 1)
    }
    if (pending.length > longestLine) return
  }
}
