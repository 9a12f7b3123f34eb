import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import websocket from '@fastify/websocket'
import { allow, type Clock, isProblem, type Log, Problem, type SocketRequest } from 'busbar/sdk'
import { hasEarlierRequest } from 'busbar/sdk/http1'
import Fastify from 'fastify'
import type { WebSocket } from 'ws'
import { duplexOf } from '../bus/duplex.js'
import { DuplexHeartbeat } from '../bus/duplex-heartbeat.js'
import type { Hub } from '../bus/hub.js'
import { originAllowed } from '../bus/origin.js'
import { whenLate, withGraceAfterAbort } from '../clock/waits.js'
import { routeRecord } from '../declarations/recorder.js'
import type { RouteRecord, SocketRecord } from '../declarations/records.js'
import { callPlugin } from '../frames/fault.js'
import { inFrame } from '../frames/frames.js'
import { sendProblem, setCommonHeaders } from './answers.js'
import type { Edge } from './edge.js'
import type { Guard } from './guard.js'
import { handshakeRefusal } from './handshake-refusal.js'
import { refuseUpgrade } from './head-refusal.js'
import { stopping } from './plugin-instance.js'
import { toProblem } from './problems.js'
import { RequestContext } from './request-context.js'
import type { SocketTable } from './socket-table.js'
import { upgradeRequired } from './upgrade-required.js'

interface UpgradeOptions {
  readonly edge: Edge
  readonly guard: Guard
  readonly hub: Hub
  readonly log: Log
  readonly clock: Clock
  /** The sockets of running plugins. */
  readonly sockets: SocketTable
}

// The hub refuses frames over its own 4 KiB; a terminal may paste more.
const maxPayload = 64 * 1024

const noSocket = (): Problem =>
  new Problem(404, 'E_NOT_FOUND', 'not found: there is no WebSocket at this address')

/** How `/api/ws` is declared: the same record as any route, so the same guard and the same description. */
export const hubRecord: RouteRecord = Object.freeze({
  ...routeRecord(
    {
      method: 'GET',
      url: '/api/ws',
      access: allow.token('read', { project: 'none' }),
      operationId: 'HandleWebSocket',
      summary: 'Open the WebSocket',
      description:
        'Live messages. Send `{"action": "subscribe", "channel": "…"}`, and `unsubscribe`, as JSON; messages come as `{"channel", "event", "data"}`. A channel that the caller may not see answers with the event `error`.',
      group: 'Platform',
      problems: [upgradeRequired],
      handler: () => undefined
    },
    { id: 'kernel' }
  ),
  successStatus: 101,
  conditional: false
})

/** A plugin's socket, for the guard and the description. */
export const socketRoute = (record: SocketRecord): RouteRecord => ({
  ...hubRecord,
  ...record,
  problems: [...hubRecord.problems, ...record.problems],
  handler: hubRecord.handler
})

/**
 * WebSocket upgrades, outside every plugin's instance: a socket must survive each toggle. Everything is
 * decided before the upgrade: 401, 429, scope 403, then Origin 403. Returns how to stop.
 */
export async function acceptUpgrades(options: UpgradeOptions): Promise<() => void> {
  const { server } = options.edge
  const heartbeat = new DuplexHeartbeat(options.clock)
  // Nothing can be answered in its turn once an upgrade has come.
  server.on('upgrade', (request, socket) => {
    if (hasEarlierRequest(request, socket as Socket)) socket.destroy()
  })
  const fastify = Fastify({
    logger: false,
    serverFactory: () => server,
    // A path that cannot be decoded is answered before any hook; without its end the socket would stay for ever.
    frameworkErrors: (_error, { raw }, reply) => {
      void reply.hijack()
      reply.raw.once('finish', () => {
        raw.socket.destroySoon()
      })
      setCommonHeaders(
        reply.raw,
        options.edge.nextRequestId(),
        options.edge.options.settings.transportSecurity
      )
      sendProblem(reply.raw, {
        status: 400,
        code: 'E_PATH_INVALID',
        message: 'the path is not valid percent-encoding'
      })
    }
  })
  await fastify.register(websocket, {
    options: { maxPayload, perMessageDeflate: false, clientTracking: false }
  })
  // With a listener, ws leaves the answer to it.
  fastify.websocketServer.on('wsClientError', (error, socket) => {
    options.edge.refuse(socket, handshakeRefusal(error))
  })
  // Before fastify looks for a body, which it would refuse in words of its own.
  fastify.addHook('onRequest', ({ raw }, reply, done) => {
    const refusal = refuseUpgrade(raw)
    if (refusal === null) return done()
    void reply.hijack()
    setCommonHeaders(reply.raw, options.edge.nextRequestId(), options.edge.options.settings.transportSecurity)
    reply.raw.setHeader('connection', 'close')
    sendProblem(reply.raw, refusal)
  })
  fastify.setNotFoundHandler((_request, reply) => {
    void reply.hijack()
    setCommonHeaders(reply.raw, options.edge.nextRequestId(), options.edge.options.settings.transportSecurity)
    reply.raw.setHeader('connection', 'close')
    sendProblem(reply.raw, noSocket())
  })
  const admitted = new WeakMap<IncomingMessage, (socket: WebSocket) => void>()
  for (const url of [hubRecord.url, `${hubRecord.url}/*`]) {
    fastify.route({
      method: 'GET',
      url,
      preValidation: async ({ raw }, reply) => {
        const attach = await admit(raw, reply.raw, { ...options, heartbeat }).catch((error: unknown) => {
          sendProblem(reply.raw, toProblem(error))
        })
        if (attach === undefined) void reply.hijack()
        else admitted.set(raw, attach)
      },
      // One class with two declarations: those of ws for ESM and for CommonJS.
      wsHandler: (socket, { raw }) => {
        admitted.get(raw)?.(socket as unknown as WebSocket)
      },
      handler: async (_request, reply) => await reply.code(426).send()
    })
  }
  await fastify.ready()
  return () => {
    server.removeAllListeners('upgrade')
    heartbeat.stop()
  }
}

const acceptLimitMs = 10_000
const late = (): Problem =>
  new Problem(503, 'E_TIMEOUT', `the socket was not accepted within ${acceptLimitMs / 1000} s`)

/** Settles like `accepting`, or ends with a problem when it takes too long or the plugin has ended. */
async function inTime(accepting: Promise<void>, ended: AbortSignal): Promise<void> {
  const end = new AbortController()
  const stop = (): void => end.abort(stopping)
  if (ended.aborted) stop()
  else ended.addEventListener('abort', stop, { once: true })
  try {
    await whenLate(withGraceAfterAbort(accepting, end.signal, 0), acceptLimitMs, () => end.abort(late()))
  } finally {
    ended.removeEventListener('abort', stop)
  }
}

/** What takes over the socket; undefined when the guard has answered. */
async function admit(
  raw: IncomingMessage,
  response: ServerResponse,
  { edge, guard, hub, log, sockets, heartbeat }: UpgradeOptions & { readonly heartbeat: DuplexHeartbeat }
): Promise<((socket: WebSocket) => void) | undefined> {
  const { settings, projects, credentials } = edge.options
  const path = (raw.url ?? '').split('?')[0] ?? ''
  const requestId = edge.nextRequestId()
  setCommonHeaders(response, requestId, settings.transportSecurity)
  response.setHeader('connection', 'close')
  const own = sockets.find(path)
  if (own === undefined && path !== hubRecord.url) throw noSocket()
  const record: RouteRecord = own === undefined ? hubRecord : socketRoute(own.record)
  const context = new RequestContext(
    raw,
    response,
    record,
    own?.params ?? {},
    edge.clientOf(raw),
    requestId,
    projects,
    credentials
  )
  if (!(await guard.admit(context))) return undefined
  if (!originAllowed(raw.headers.origin, raw.headers.host, settings.corsOrigins))
    throw new Problem(403, 'E_ORIGIN', 'origin not allowed')
  const { caller } = context
  if (caller.kind === 'anonymous') throw new Error('the guard admitted an anonymous caller to a socket')
  if (own === undefined)
    return socket => {
      hub.accept(socket, caller)
    }
  const { plugin, accept, handler } = own.record
  const socketRequest: SocketRequest = {
    params: own.params,
    caller,
    project: context.project,
    ip: context.ip,
    requireProject: async (projectId, role) => await context.requireProject(projectId, role),
    watchAccess: lost => context.watchAccess(() => inFrame(plugin, lost))
  }
  const accepting = callPlugin(plugin, async () => {
    await accept?.(socketRequest, own.self)
  })
  await inTime(accepting, own.signal).catch((error: unknown) => {
    if (!isProblem(error)) log.error({ err: error, plugin }, 'a socket could not be accepted')
    throw error
  })
  return socket => {
    const duplex = duplexOf(socket, plugin, own.signal, caller.user.id)
    const unwatch = context.watchAccess(() => {
      duplex.close(1008, 'access denied')
    })
    heartbeat.follow(socket)
    void callPlugin(plugin, async () => {
      await handler(duplex, socketRequest, own.self)
    })
      .then(
        () => 1000,
        (error: unknown) => {
          if (!isProblem(error)) log.error({ err: error, plugin }, 'a socket handler failed')
          // By this a client knows that it is to come back.
          return 1011
        }
      )
      .then(code => {
        unwatch()
        duplex.close(code)
      })
  }
}
