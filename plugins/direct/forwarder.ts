import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import type { TrafficSwitch, TrafficTarget } from 'busbar/api/deployments'
import {
  type ConnectionCaps,
  capConnections,
  endStalledReaders,
  Http1Request,
  inTurn,
  isLastRequest,
  maxHeaders
} from 'busbar/sdk/http1'
import { forwardRequest } from './exchange.js'
import { refuse } from './refusal.js'
import { defaultLimits, type ForwardingLimits, type Route } from './route.js'
import { createSwitchMeter } from './switch-meter.js'
import { forwardUpgrade } from './upgrade.js'
import { createUpstream, type Upstream } from './upstream.js'

/** Requests under way get this long when the port itself is closed. */
const closeGraceMs = 3000

/** Of all applications: what an attack on some of them may take of the process, and what it leaves to each of the others. */
const ofAllApplications = { open: 0, max: 8192, each: 32 }
const defaultCaps: ConnectionCaps = Object.freeze({
  inAll: 1000,
  perAddress: 500,
  together: ofAllApplications
})

/** One application's port: an HTTP forwarder whose target can be changed between two requests. */
export interface Forwarder {
  readonly port: number
  /** The only host by which it may be asked; undefined: any. */
  readonly ownHost: string | undefined
  readonly target: TrafficTarget | null
  /** From now on new requests go to `target`. What is under way elsewhere finishes there. */
  switchTo(target: TrafficTarget): TrafficSwitch
  /** The same without being watched: the container has moved or is gone. */
  retarget(target: TrafficTarget | null): void
  close(): Promise<void>
}

/** Listens on `host:port` (0: any free port); rejects with the error of `listen` when it cannot. */
export async function openForwarder(
  at: { readonly host: string; readonly port: number; readonly ownHost?: string | undefined },
  target: TrafficTarget | null,
  limits: Partial<ForwardingLimits> = {},
  caps: ConnectionCaps = defaultCaps
): Promise<Forwarder> {
  let current: Upstream | null = target === null ? null : createUpstream(target)
  const meter = createSwitchMeter()
  const { ownHost } = at
  const route: Route = { ownHost, current: () => current, meter, limits: { ...defaultLimits, ...limits } }

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
  endStalledReaders(server, route.limits.readerMs)
  // `readHead` refuses more.
  server.maxHeadersCount = maxHeaders + 1
  const forward =
    (options: { expectsContinue: boolean }) => (request: IncomingMessage, response: ServerResponse) =>
      inTurn(
        request,
        response,
        () => {
          if (isLastRequest(request)) response.shouldKeepAlive = false
          forwardRequest(route, request, response, options)
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
    forwardUpgrade(route, request, client, head)
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
    ownHost,
    get target() {
      return current?.target ?? null
    },

    retarget(next) {
      if (next !== null && current !== null && isSameTarget(next, current.target)) return
      const previous = current
      current = next === null ? null : createUpstream(next)
      previous?.retire()
    },

    switchTo(next) {
      const previous = current
      const watch = meter.watch()
      const switchedAt = performance.now()
      current = createUpstream(next)
      previous?.retire()
      return {
        async drain(timeoutMs) {
          const cut = (await previous?.drained(timeoutMs)) ?? 0
          const { served, failed, longestGapMs } = watch.end()
          return {
            served,
            failed,
            longestGapMs: Math.round(longestGapMs),
            drainMs: Math.round(
              (previous === null ? switchedAt : (previous.emptyAt ?? performance.now())) - switchedAt
            ),
            cut
          }
        }
      }
    },

    async close() {
      const closed = new Promise<void>(resolve => {
        server.close(() => resolve())
      })
      server.closeIdleConnections()
      const cutOff = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, closeGraceMs)
      // A WebSocket ends when one of its sides closes it, which is not waited for here.
      for (const socket of upgraded) socket.destroySoon()
      if (current === null || current.open === upgraded.size)
        for (const socket of sockets) socket.destroySoon()
      await closed
      clearTimeout(cutOff)
      current?.retire()
    }
  }
}

export const isSameTarget = (a: TrafficTarget, b: TrafficTarget): boolean =>
  a.host === b.host &&
  a.port === b.port &&
  a.containerId === b.containerId &&
  a.deploymentId === b.deploymentId
