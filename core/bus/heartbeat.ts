import type { Clock } from 'busbar/sdk'
import { inSlices } from './slices.js'

const pingEveryMs = 30_000
/** A client that has not answered a ping by then is dead. */
const pongWithinMs = 10_000

/** The server's end of a socket. */
export interface Follower {
  ping(): void
  /** Some time after a ping: the socket ends when its client has not answered. */
  endIfSilent(): void
}

/** One timer for all connections: its first beat of three pings, the second ends those that kept silent. */
export function startHeartbeat(clock: Clock, connections: ReadonlySet<Follower>): () => void {
  const beats = pingEveryMs / pongWithinMs
  let beat = 0
  return clock.every(pongWithinMs, async () => {
    beat = (beat + 1) % beats
    if (beat === 0) await inSlices(each(connections, connection => connection.ping()))
    if (beat === 1) await inSlices(each(connections, connection => connection.endIfSilent()))
  })
}

function* each(
  connections: ReadonlySet<Follower>,
  act: (connection: Follower) => void
): Generator<undefined, void> {
  for (const connection of [...connections]) {
    act(connection)
    yield
  }
}
