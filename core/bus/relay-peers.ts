import type { Piece } from './relay-frame.js'

interface Peer {
  lastHeardAt: number
  readonly channels: Set<string>
  /** Those of one frame, from the first on. */
  pieces: Piece[]
}

/** A process not heard of for so long is gone. */
const peerLostMs = 70_000

/** The other processes and the channels that each of them has subscribers for. */
export class RelayPeers {
  readonly #peers = new Map<string, Peer>()

  get isEmpty(): boolean {
    return this.#peers.size === 0
  }

  isWanted(channel: string): boolean {
    for (const { channels } of this.#peers.values()) if (channels.has(channel)) return true
    return false
  }

  /** What is known of a process; an unknown one is added. */
  hear(id: string, now: number): { readonly peer: Peer; readonly isNew: boolean } {
    const known = this.#peers.get(id)
    const peer = known ?? { lastHeardAt: now, channels: new Set<string>(), pieces: [] }
    peer.lastHeardAt = now
    this.#peers.set(id, peer)
    return { peer, isNew: known === undefined }
  }

  forget(id: string): void {
    this.#peers.delete(id)
  }

  forgetLost(now: number): void {
    for (const [id, { lastHeardAt }] of this.#peers)
      if (now - lastHeardAt > peerLostMs) this.#peers.delete(id)
  }
}

/** The whole text once its last piece is there; one with a missing piece never is. */
export function collect(peer: Peer, piece: Piece): string | undefined {
  // An outage may have taken the end of one frame and the beginning of the next.
  if (peer.pieces[0]?.of !== piece.of) peer.pieces = []
  if (peer.pieces.length !== piece.index) return undefined
  peer.pieces.push(piece)
  if (peer.pieces.length < piece.count) return undefined
  return Buffer.concat(peer.pieces.splice(0).map(({ text }) => Buffer.from(text, 'base64'))).toString()
}
