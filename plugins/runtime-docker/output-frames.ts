import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { Turns } from 'busbar/sdk'

type StreamName = 'stdout' | 'stderr'

/** A piece of what a program has written, as the engine sends it. */
interface OutputFrame {
  readonly stream: StreamName
  readonly text: string
}

const headerLength = 8

/**
 * What the engine sends of the output of a program, piece by piece. Without a terminal each piece has a header: one byte
 * for the stream, three that are empty, four for its length. Text that is cut within a character is put together again.
 */
export async function* outputFrames(stream: Readable, hasTerminal: boolean): AsyncGenerator<OutputFrame> {
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  const turns = new Turns()
  let waiting: Buffer = Buffer.alloc(0)
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (hasTerminal) {
      yield { stream: 'stdout', text: decoders.stdout.write(chunk) }
      continue
    }
    waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk])
    let at = 0
    while (at + headerLength <= waiting.length) {
      const end = at + headerLength + waiting.readUInt32BE(at + 4)
      if (end > waiting.length) break
      const name: StreamName = waiting[at] === 2 ? 'stderr' : 'stdout'
      // Very many may have come already, and of those no step waits for anything.
      if (turns.isOver) await turns.pass()
      yield { stream: name, text: decoders[name].write(waiting.subarray(at + headerLength, end)) }
      at = end
    }
    waiting = waiting.subarray(at)
  }
}
