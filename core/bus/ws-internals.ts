import type { Socket } from 'node:net'
import { Sender } from 'ws'

declare module 'ws' {
  interface FrameOptions {
    readonly fin: boolean
    readonly rsv1: boolean
    readonly opcode: number
    readonly mask: boolean
  }
  /** Exported by ws, missing in its types. */
  export const Sender: { frame(data: Buffer, options: FrameOptions): Buffer[] }

  interface WebSocket {
    /** The raw socket below; null before the handshake and after the close. */
    readonly _socket: Socket | null
  }
}

const textFrame = { fin: true, rsv1: false, opcode: 1, mask: false }
const pingFrame = { ...textFrame, opcode: 9 }

/**
 * The bytes of one text message, the same for every client. They may be written to the raw socket
 * beside the frames that ws writes itself: without permessage-deflate ws has no queue of its own and
 * writes each frame whole.
 */
export const frameOf = (text: string): Buffer => Buffer.concat(Sender.frame(Buffer.from(text), textFrame))

export const pingBytes: Buffer = Buffer.concat(Sender.frame(Buffer.alloc(0), pingFrame))
