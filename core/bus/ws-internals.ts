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

export const pingBytes: Buffer = Buffer.concat(
  Sender.frame(Buffer.alloc(0), { fin: true, rsv1: false, opcode: 9, mask: false })
)
