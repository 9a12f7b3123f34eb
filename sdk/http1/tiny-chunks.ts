import type { IncomingMessage } from 'node:http'
import { stopParsing } from './stop-parsing.js'

/** So many chunks that came together must hold so many bytes each, on average. */
const together = { chunks: 1_000, bytesEach: 16 } as const

/**
 * Whether a body comes in too many tiny chunks. Each of them is an event and some hundred bytes of memory, whatever it
 * holds, and one read may bring ten thousand; limits of buffers count what they hold. Only what one read of the
 * connection brought together counts: who sends a few bytes now and then may do so for ever.
 */
export class ChunkCount {
  #read = -1
  #chunks = 0
  #bytes = 0

  /** To be asked for each chunk; `read` tells the reads of its connection apart. */
  isTooFine(read: number, length: number): boolean {
    if (read !== this.#read) {
      this.#read = read
      this.#chunks = 0
      this.#bytes = 0
    }
    this.#chunks += 1
    this.#bytes += length
    if (this.#chunks < together.chunks) return false
    const isTooFine = this.#bytes < together.chunks * together.bytesEach
    this.#chunks = 0
    this.#bytes = 0
    return isTooFine
  }
}

/** The code of the error that listeners of `clientError` are told. */
export const tinyChunks = 'ERR_TINY_CHUNKS'

/** Ends the connection of a request as Node does when its parser finds a fault in it: by `clientError`, else with 400. */
export function refuseRest({ socket }: IncomingMessage): void {
  stopParsing(socket)
  socket.emit(
    'error',
    Object.assign(new Error('the body comes in too many tiny chunks'), { code: tinyChunks })
  )
  socket.destroySoon()
}
