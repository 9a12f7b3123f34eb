import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { plainAddress } from '../address.js'
import { setClientKey } from './client-key.js'

export interface ConnectionCaps {
  /** Open connections of the server, of all addresses. */
  readonly inAll: number
  /** Of one client: an IPv4 address, or the /64 of an IPv6 address. */
  readonly perAddress: number
  /** True for an address that stands for many clients, as that of a proxy does: it has no cap of its own. */
  readonly isExempt?: (address: string) => boolean
  /** Counts the connections of several servers together: hand the same object to each. `each` of them may have so many whatever the others have, of one client a quarter of that. */
  readonly together?: { open: number; readonly max: number; readonly each?: number }
}

const idleSweepMs = 1_000

/**
 * Refuses connections beyond the caps, with 429 or 503, before anything is read from them; at the cap for all, idle
 * ones end first. An upgraded connection (a WebSocket) counts until it closes. Call it before the server listens.
 */
export function capConnections(
  server: Server,
  { inAll, perAddress, isExempt = () => false, together = { open: 0, max: Infinity } }: ConnectionCaps
): void {
  const byAddress = new Map<string, number>()
  let open = 0
  let sweptAt = -Infinity
  server.on('connection', (socket: Socket) => {
    const key = setClientKey(socket, isExempt(plainAddress(socket.remoteAddress ?? '')))
    const ofAddress = key === undefined ? 0 : (byAddress.get(key) ?? 0)
    if (ofAddress >= perAddress)
      return refuse(socket, '429 Too Many Requests', 'too many connections from this address')
    const each = together.each ?? 0
    const isBeyondOwn = open >= each || ofAddress >= each / 4
    if (open >= inAll || (together.open >= together.max && isBeyondOwn)) {
      if (performance.now() - sweptAt > idleSweepMs) {
        sweptAt = performance.now()
        server.closeIdleConnections()
      }
      return refuse(socket, '503 Service Unavailable', 'too many connections')
    }
    open++
    together.open++
    if (key !== undefined) byAddress.set(key, ofAddress + 1)
    let isCounted = key !== undefined
    const uncount = (): void => {
      if (!isCounted || key === undefined) return
      isCounted = false
      const left = (byAddress.get(key) ?? 1) - 1
      if (left > 0) byAddress.set(key, left)
      else byAddress.delete(key)
    }
    ;(socket as CappedSocket)[lift] = uncount
    socket.once('close', () => {
      open--
      together.open--
      uncount()
    })
  })
}

const lift = Symbol('lifts the cap of its address')
type CappedSocket = Socket & { [lift]?: () => void }

/** A connection has turned out to stand for many clients: it counts among all, and for no address any more. Requests that were sent ahead on it stay with its address. */
export function standsForMany(socket: Socket): void {
  const uncount = (socket as CappedSocket)[lift]
  if (uncount === undefined) return
  delete (socket as CappedSocket)[lift]
  uncount()
}

function refuse(socket: Socket, status: string, error: string): void {
  const body = JSON.stringify({
    error: `${error}: close some, or try again later`,
    code: 'E_TOO_MANY_CONNECTIONS'
  })
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\nretry-after: 5\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  )
  // Whether the client reads it or not.
  socket.destroySoon()
}
