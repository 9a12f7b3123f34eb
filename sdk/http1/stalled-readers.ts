import type { Server } from 'node:http'
import { isAnswering } from './request-turns.js'

/**
 * Ends a connection whose client has taken nothing of its answer for `limitMs`: it would hold the connection, and what
 * is on its way, without a limit. An answer that was not given yet may take its time, and so may the next
 * event of a stream. For a server whose requests begin by `inTurn`.
 */
export function endStalledReaders(server: Server, limitMs: number): void {
  server.timeout = limitMs
  server.on('timeout', socket => {
    // Also raised when a kept connection has waited long enough for its next request.
    if (socket.writableLength > 0 || !isAnswering(socket)) socket.destroy()
  })
}
