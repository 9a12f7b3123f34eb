interface Peer {
  lastHeardAt: number
  readonly channels: Set<string>
  pieces: string[]
}

/** A process not heard of for so long is gone. */
const peerLostMs = 70_000

/** The other processes and what each of them wants to hear. */
export class RelayPeers {
  readonly #peers = new Map<string, Peer>()

  get isEmpty(): boolean {
    return this.#peers.size === 0
  }

  isWanted(channel: string): boolean {
    for (const { channels } of this.#peers.values()) if (channels.has(channel)) return true
    return false
  }

  /** What is known of a process; somebody never heard of before is made known. */
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
export function collect(peer: Peer, index: number, count: number, text: string): string | undefined {
  if (index === 0) peer.pieces = []
  if (peer.pieces.length !== index) return undefined
  peer.pieces.push(text)
  if (peer.pieces.length < count) return undefined
  return Buffer.concat(peer.pieces.splice(0).map(piece => Buffer.from(piece, 'base64'))).toString()
}
