import type { Clock } from 'busbar/sdk'
import type { Connection } from './connection.js'
import { inSlices } from './slices.js'

const pingEveryMs = 30_000
/** A client that has not answered a ping by then is dead. */
const pongWithinMs = 10_000

/** One timer for all connections: its first beat of three pings, the second ends those that kept silent. */
export function startHeartbeat(clock: Clock, connections: ReadonlySet<Connection>): () => void {
  const beats = pingEveryMs / pongWithinMs
  let beat = 0
  return clock.every(pongWithinMs, async () => {
    beat = (beat + 1) % beats
    if (beat === 0) await inSlices(each(connections, ping))
    if (beat === 1) await inSlices(each(connections, endSilent))
  })
}

function* each(
  connections: ReadonlySet<Connection>,
  act: (connection: Connection) => void
): Generator<undefined, void> {
  for (const connection of [...connections]) {
    act(connection)
    yield
  }
}

function ping(connection: Connection): void {
  connection.isUnanswered = true
  connection.outbox.ping()
}

function endSilent(connection: Connection): void {
  // A socket that is not being read from cannot answer.
  if (connection.isUnanswered && !connection.webSocket.isPaused) connection.webSocket.terminate()
}
