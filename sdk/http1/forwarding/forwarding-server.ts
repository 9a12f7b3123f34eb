import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { type ConnectionCaps, capConnections } from '../connection-caps.js'
import { Http1Request, isLastRequest, maxHeaders } from '../request.js'
import { inTurn } from '../request-turns.js'
import { endStalledReaders } from '../stalled-readers.js'
import { forwardRequest } from './exchange.js'
import { refuse } from './refusal.js'
import type { Forwarding } from './route.js'
import { forwardUpgrade } from './upgrade.js'

/** Requests under way get this long when the port itself is closed. */
const closeGraceMs = 3000

/** A port on which requests are forwarded. */
export interface ForwardingServer {
  readonly port: number
  /** `open` says how many requests and sockets are under way at the containers. */
  close(open: () => number): Promise<void>
}

/** Listens on `host:port` (0: any free port); rejects with the error of `listen` when it cannot. */
export async function openForwardingServer(
  at: { readonly host: string; readonly port: number },
  forwarding: Forwarding,
  caps: ConnectionCaps
): Promise<ForwardingServer> {
  // An upload may take as long as it takes; a client that does not even send a head may not.
  const server = createServer({
    IncomingMessage: Http1Request,
    requestTimeout: 0,
    headersTimeout: 20_000,
    connectionsCheckingInterval: 5_000,
    keepAliveTimeout: 30_000,
    noDelay: true,
    // `readHead` asks for it: an answer of Node's own would take no turn.
    requireHostHeader: false
  })
  capConnections(server, caps)
  endStalledReaders(server, forwarding.limits.readerMs)
  // `readHead` refuses more.
  server.maxHeadersCount = maxHeaders + 1
  const forward =
    (options: { expectsContinue: boolean }) => (request: IncomingMessage, response: ServerResponse) =>
      inTurn(
        request,
        response,
        () => {
          if (isLastRequest(request)) response.shouldKeepAlive = false
          forwardRequest(forwarding, request, response, options)
        },
        () => refuse(response, 'tooFarAhead')
      )
  server.on('request', forward({ expectsContinue: false }))
  server.on('checkContinue', forward({ expectsContinue: true }))
  // An expectation of another kind is the container's to answer too.
  server.on('checkExpectation', forward({ expectsContinue: false }))
  const sockets = new Set<Socket>()
  const upgraded = new Set<Socket>()
  server.on('upgrade', (request, client, head) => {
    if (!(client instanceof Socket)) return
    upgraded.add(client)
    client.once('close', () => upgraded.delete(client))
    forwardUpgrade(forwarding, request, client, head)
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(at.port, at.host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  const { port } = server.address() as AddressInfo

  return {
    port,
    async close(open) {
      const closed = new Promise<void>(resolve => {
        server.close(() => resolve())
      })
      server.closeIdleConnections()
      const cutOff = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, closeGraceMs)
      // A WebSocket ends when one of its sides closes it, which is not waited for here.
      const isAllUpgraded = open() <= upgraded.size
      for (const socket of upgraded) socket.destroySoon()
      if (isAllUpgraded) for (const socket of sockets) socket.destroySoon()
      await closed
      clearTimeout(cutOff)
    }
  }
}
