import type { Piece } from './relay-frame.js'

interface Peer {
  lastHeardAt: number
  readonly channels: Set<string>
  /** By user. */
  readonly sockets: Map<string, number>
  /** Those of one frame, from the first on. */
  pieces: Piece[]
}

/** A process not heard of for so long is gone. */
const peerLostMs = 70_000

/** The other processes, the channels that each of them has subscribers for, and the sockets of users there. */
export class RelayPeers {
  readonly #peers = new Map<string, Peer>()

  get isEmpty(): boolean {
    return this.#peers.size === 0
  }

  isWanted(channel: string): boolean {
    for (const { channels } of this.#peers.values()) if (channels.has(channel)) return true
    return false
  }

  /** How many sockets a user has with the others. */
  socketsOf(userId: string): number {
    let sum = 0
    for (const { sockets } of this.#peers.values()) sum += sockets.get(userId) ?? 0
    return sum
  }

  /** What is known of a process; an unknown one is added. */
  hear(id: string, now: number): { readonly peer: Peer; readonly isNew: boolean } {
    const known = this.#peers.get(id)
    const peer = known ?? {
      lastHeardAt: now,
      channels: new Set<string>(),
      sockets: new Map<string, number>(),
      pieces: []
    }
    peer.lastHeardAt = now
    this.#peers.set(id, peer)
    return { peer, isNew: known === undefined }
  }

  forget(id: string): void {
    this.#peers.delete(id)
  }

  /** Whether there was one. */
  forgetLost(now: number): boolean {
    const lost = [...this.#peers].filter(([, { lastHeardAt }]) => now - lastHeardAt > peerLostMs)
    for (const [id] of lost) this.#peers.delete(id)
    return lost.length > 0
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
