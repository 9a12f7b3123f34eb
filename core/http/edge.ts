import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { isPromise } from 'node:util/types'
import { cutText, type Log, Problem, plainAddress, problemTable } from 'busbar/sdk'
import {
  capConnections,
  countWaiting,
  endStalledReaders,
  inTurn,
  isAnswering,
  isLastRequest,
  maxHeaders,
  standsForMany,
  tinyChunks
} from 'busbar/sdk/http1'
import type { ProjectAccess } from '../access/project-access.js'
import type { CredentialWatch } from '../auth/credential-watch.js'
import { mapAwaitable } from '../clock/map-awaitable.js'
import { stopping } from '../clock/stopping.js'
import { whenLate } from '../clock/waits.js'
import type { Settings } from '../config/environment.js'
import { inFrame, kernelOwner } from '../frames/frames.js'
import { sendProblem, setCommonHeaders } from './answers.js'
import { BodyWatch, type WatchedBody } from './body-watch.js'
import { clientOf, isTrusted } from './client-address.js'
import { applyCors } from './cors.js'
import type { Guard } from './guard.js'
import { treatHeadAsGet } from './head-only.js'
import { refuseHead } from './head-refusal.js'
import { PlatformRequest } from './platform-request.js'
import { PlatformResponse } from './platform-response.js'
import { toProblem } from './problems.js'
import { type RawRefusal, refuseRaw } from './raw-refusal.js'
import { type Client, RequestContext } from './request-context.js'
import { RequestCounts } from './request-counts.js'
import { requestMembers } from './request-line.js'
import { type Match, RouteTable } from './route-table.js'
import { requireUpgrade } from './upgrade-required.js'

interface EdgeOptions {
  readonly settings: Settings
  readonly guard: Guard
  readonly projects: ProjectAccess
  readonly credentials: CredentialWatch
  /** Whether a WebSocket can be opened at a path now. */
  readonly isSocket: (path: string) => boolean
  /** Whether a request was handed on by a proxy of this installation. */
  readonly isOwnProxy: (request: IncomingMessage) => boolean
  /** Whether a plugin is about to serve, and does not yet. */
  readonly isStarting: (plugin: string) => boolean
  readonly log: Log
}

const problems = problemTable({
  tooFarAhead: [
    429,
    'E_TOO_FAR_AHEAD',
    'too many requests of this address wait behind others of their connections',
    'send fewer ahead of their answers'
  ],
  nul: [400, 'E_PATH_INVALID', 'the address must not contain NUL'],
  encoding: [400, 'E_PATH_INVALID', 'the path is not valid percent-encoding'],
  unknown: [
    404,
    'E_NOT_FOUND',
    'not found: there is no operation {method} {path}',
    '/api/docs has those there are'
  ],
  trailingSlash: [404, 'E_NOT_FOUND', 'not found', 'leave out the slash at the end, and ask for {path}'],
  unknownPlugin: [404, 'E_NOT_FOUND', 'not found; no running plugin "{plugin}" serves this path'],
  starting: [503, 'E_PLUGIN_STARTING', 'the plugin "{plugin}" is starting', 'ask again in a moment'],
  off: [404, 'E_PLUGIN_OFF', 'the plugin "{plugin}" is off', 'an administrator can turn it on'],
  method: [405, 'E_METHOD', 'there is no {method} at this address', 'use {allowed}']
})
function startingProblem(plugin: string): Problem {
  const { status, code, message, details } = problems.starting({ plugin }, { plugin })
  return new Problem(status, code, message, details, { 'retry-after': '1' })
}
const allowOf = (methods: readonly string[]): string =>
  methods.flatMap(one => (one === 'GET' ? ['GET', 'HEAD'] : [one])).join(', ')
const methodNotAllowed = (method: string, methods: readonly string[]): Problem => {
  const allow = allowOf(methods)
  const { status, code, message, details } = problems.method({ method, allowed: allow })
  return new Problem(status, code, message, details, { allow })
}
/** Of a path in an answer. */
const shownCharacters = 200
const expirySweepMs = 250
/** The status that counts where the client went away before there was an answer. */
const clientGone = 499
const eventStream = 'text/event-stream'
/** How long a client may take nothing of an answer that waits for it. A slow one that reads all the time shows no progress for minutes: much waits in buffers of the system. */
const stalledMs = 300_000
/** The body of a request that was answered without it. */
const unread: WatchedBody = Object.freeze({ kind: 'none', limit: 0, ip: '' })
const malformed: Readonly<Record<string, readonly [status: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'the address and the headers together are larger than 32 KiB'],
  [tinyChunks]: [400, 'the body comes in too many tiny chunks: send larger ones'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request did not arrive in time: send it again']
}

/**
 * The one HTTP server, for the life of the process. It looks a request up in the route table of the
 * moment, lets the guard decide, and passes it to the instance of the plugin that declared the route.
 */
export class Edge {
  readonly server: Server
  /** Swapped whole when plugins come and go. */
  table = new RouteTable([])
  readonly counts = new RequestCounts()
  #requests = 0
  #closed: Promise<void> | undefined
  readonly #bodies = new BodyWatch()
  readonly #prefix = Math.random().toString(36).slice(2, 8)
  /** While a request is under way. */
  #sweep: NodeJS.Timeout | undefined

  constructor(readonly options: EdgeOptions) {
    this.server = createServer({
      IncomingMessage: PlatformRequest,
      ServerResponse: PlatformResponse,
      keepAliveTimeout: 65_000,
      requestTimeout: 0,
      headersTimeout: 20_000,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: 32 * 1024,
      // `headFault` asks for it: an answer of node's own would take no turn.
      requireHostHeader: false
    })
    const { trustedProxies, maxConnections, maxConnectionsPerAddress } = options.settings
    capConnections(this.server, {
      inAll: maxConnections,
      perAddress: maxConnectionsPerAddress,
      isExempt: address => trustedProxies !== undefined && isTrusted(address, trustedProxies)
    })
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      this.handle(request, response)
    }
    const refuse = (_: IncomingMessage, response: ServerResponse): void => {
      setCommonHeaders(response, this.nextRequestId(), options.settings.transportSecurity)
      sendProblem(response, problems.tooFarAhead())
      this.counts.addUnrouted(response.statusCode)
    }
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      inTurn(request, response, handle, refuse)
    }
    // `refuseHead` refuses more.
    this.server.maxHeadersCount = maxHeaders + 1
    this.server.on('request', answer)
    // An unknown expectation may be ignored (RFC 9110, 10.1.1); node's own answer would pass all limits.
    this.server.on('checkExpectation', answer)
    this.server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => {
      const [status, message] = malformed[code ?? ''] ?? [400, 'the request is not valid HTTP']
      this.refuse(socket, { status, code: 'E_REQUEST_INVALID', message })
    })
    endStalledReaders(this.server, stalledMs)
    this.server.on('connection', (socket: Socket) => {
      socket.once('close', () => {
        this.#logNeverBegun(socket)
      })
    })
  }

  #startSweep(): NodeJS.Timeout {
    return setInterval(() => {
      this.#expireOverdue()
      this.#bodies.sweep(performance.now())
      if (this.#isBusy()) return
      clearInterval(this.#sweep)
      this.#sweep = undefined
    }, expirySweepMs).unref()
  }

  #isBusy(): boolean {
    return !this.#bodies.isEmpty || [...this.table.instances].some(({ inFlight }) => inFlight > 0)
  }

  /** Before it is dispatched. */
  #watch(request: IncomingMessage, response: ServerResponse, body: WatchedBody): void {
    this.#bodies.add(request, response, body)
    this.#sweep ??= this.#startSweep()
  }

  async listen(): Promise<AddressInfo> {
    const { host, port } = this.options.settings
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      // In a frame, so that an error that is not caught ends the connection it came of and not the process.
      inFrame(kernelOwner, () =>
        this.server.listen(port, host, () => {
          this.server.off('error', reject)
          resolve()
        })
      )
    })
    return this.server.address() as AddressInfo
  }

  /** From now on connections are refused, and so is every further request of those that are open. */
  stopAccepting(): void {
    this.#closed ??= new Promise(resolve => {
      this.server.close(() => {
        resolve()
      })
      this.server.closeIdleConnections()
    })
  }

  /** Waits for what is under way; after `timeoutMs` the rest is cut. */
  async close(timeoutMs: number): Promise<void> {
    this.stopAccepting()
    await whenLate(this.#closed as Promise<void>, timeoutMs, () => {
      this.server.closeAllConnections()
    })
    clearInterval(this.#sweep)
  }

  /** Answers what never became a request that could be answered, and ends its connection. */
  refuse(socket: Duplex, refusal: RawRefusal): void {
    refuseRaw(socket, refusal, this.nextRequestId(), this.options.settings.transportSecurity)
  }

  /** How many there are now. */
  async connections(): Promise<number> {
    return await new Promise((resolve, reject) => {
      this.server.getConnections((error, count) => {
        if (error === null) resolve(count)
        else reject(error)
      })
    })
  }

  /** Who has sent a request. */
  clientOf(request: IncomingMessage): Client {
    const { settings } = this.options
    const isOwnProxy = this.options.isOwnProxy(request)
    if (isOwnProxy) standsForMany(request.socket)
    return clientOf(request, { trustedProxies: settings.trustedProxies, isOwnProxy })
  }

  nextRequestId(): string {
    this.#requests = (this.#requests + 1) % Number.MAX_SAFE_INTEGER
    return `${this.#prefix}-${this.#requests.toString(36)}`
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const requestId = this.nextRequestId()
    const fail = (error: unknown): void => {
      const problem = toProblem(error)
      if (problem.code === 'E_REQUEST_INVALID') response.shouldKeepAlive = false
      // What is a problem from the start is an answer, and no failure.
      if (problem.status >= 500 && problem !== error)
        this.options.log.error({ err: error, requestId }, 'a request failed before it reached a plugin')
      sendProblem(response, problem)
      this.#watch(request, response, unread)
    }
    let match: Match | undefined
    try {
      match = this.#find(request, response, requestId)
    } catch (error) {
      fail(error)
    }
    if (match === undefined) {
      this.counts.addUnrouted(response.statusCode)
      return
    }
    try {
      const admission = this.#admit(match, request, response, requestId)
      if (isPromise(admission)) admission.catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  /** The route of a request; undefined where it has been answered without one. */
  #find(request: IncomingMessage, response: ServerResponse, requestId: string): Match | undefined {
    const { settings } = this.options
    setCommonHeaders(response, requestId, settings.transportSecurity)
    const refusal = refuseHead(request)
    if (refusal !== null) throw refusal
    if (this.#closed !== undefined || isLastRequest(request)) response.setHeader('connection', 'close')
    if (this.#closed !== undefined) throw stopping()
    if (request.method === 'OPTIONS') this.#tellMethods(request, response)
    if (applyCors(request, response, settings.corsOrigins)) {
      this.#watch(request, response, unread)
      return
    }
    treatHeadAsGet(request)
    const url = request.url ?? '/'
    // PostgreSQL stores no NUL, and no honest address holds one.
    if (url.includes('%00')) throw problems.nul()
    const path = pathOf(url)
    const match = this.table.find(request.method ?? 'GET', path)
    if (match === undefined) throw this.#unknownPath(request.method ?? 'GET', path)
    return match
  }

  #admit(
    { entry: { record, instance }, params }: Match,
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string
  ): void | Promise<void> {
    const { guard, projects, credentials } = this.options
    const context = new RequestContext(
      request,
      response,
      record,
      params,
      this.clientOf(request),
      requestId,
      projects,
      credentials
    )
    response.on('close', () => {
      this.#end(context)
    })
    if (instance === undefined) throw this.#notServing(record.plugin)
    const decided = mapAwaitable(guard.admit(context), isAdmitted => {
      this.#watch(request, response, {
        kind: isAdmitted ? record.body : 'none',
        limit: record.bodyLimit,
        ip: context.ip
      })
      // Who has left while the guard waited is not told of by any event any more.
      if (isAdmitted && !response.destroyed) instance.dispatch(context)
    })
    return isPromise(decided) ? instance.awaiting(decided) : decided
  }

  #methodsOf(path: string): readonly string[] {
    return this.options.isSocket(path) ? ['GET'] : this.table.methodsOf(path)
  }

  /** RFC 9110, 9.3.7. */
  #tellMethods(request: IncomingMessage, response: ServerResponse): void {
    const methods = this.#methodsOf(pathOf(request.url ?? '/'))
    if (methods.length > 0) response.setHeader('allow', allowOf(methods))
  }

  #unknownPath(method: string, path: string): Problem {
    try {
      decodeURIComponent(path)
    } catch {
      return problems.encoding()
    }
    const methods = this.#methodsOf(path)
    if (method === 'GET' && this.options.isSocket(path)) return requireUpgrade()
    if (methods.length > 0) return methodNotAllowed(method, methods)
    const shown = cutText(path, shownCharacters)
    const plugin = /^\/api\/x\/([a-z][a-z0-9-]*)(\/|$)/.exec(path)?.[1]
    const isKnown = path.endsWith('/') && this.table.methodsOf(path.slice(0, -1)).length > 0
    if (isKnown) return problems.trailingSlash({ path: shown.replace(/\/$/, '') })
    if (plugin === undefined) return problems.unknown({ method, path: shown })
    return this.options.isStarting(plugin) ? startingProblem(plugin) : problems.unknownPlugin({ plugin })
  }

  #notServing(plugin: string): Problem {
    return this.options.isStarting(plugin) ? startingProblem(plugin) : problems.off({ plugin }, { plugin })
  }

  #end(context: RequestContext): void {
    const { raw, response } = context
    context.whenClosed?.()
    this.#count(context)
    if (!response.writableFinished) return
    this.#logRequest(context)
    // After all who listen, of whom one lets begin what was sent ahead.
    if (this.#closed !== undefined) process.nextTick(endIdle, raw.socket)
  }

  #count({ record, response, startedAt }: RequestContext): void {
    this.counts.add(
      record,
      response.headersSent ? response.statusCode : clientGone,
      record.produces === eventStream ? undefined : (performance.now() - startedAt) / 1000
    )
  }

  #logRequest({ raw, response, record, requestId, startedAt, client, caller }: RequestContext): void {
    const { log } = this.options
    if (!log.isLevelEnabled('info')) return
    // The pattern instead of the path where the path itself is a secret; the query never.
    const path = record.params.includes('token') ? record.url : pathOf(raw.url ?? '')
    log.info(
      requestMembers({
        requestId,
        method: record.method,
        path,
        status: response.statusCode,
        ms: Math.round((performance.now() - startedAt) * 10) / 10,
        ip: client.ip,
        user: caller.kind === 'anonymous' ? undefined : caller.user.id
      }),
      'request'
    )
  }

  /** One line for all of them: a client may send a hundred ahead, and close. */
  #logNeverBegun(socket: Socket): void {
    const requests = countWaiting(socket)
    if (requests === 0) return
    const ip = plainAddress(socket.remoteAddress ?? '')
    this.options.log.info({ ip, requests }, 'a connection has closed, and requests on it were never begun')
  }

  #expireOverdue(): void {
    const now = performance.now()
    for (const instance of this.table.instances) if (instance.inFlight > 0) instance.expireOverdue(now)
  }
}

/**
 * Ends a connection that has no request left, when all of its answers are on their way. Node's `closeIdleConnections` would
 * cut an answer of which a part is still to be sent.
 */
function endIdle(socket: Socket): void {
  if (!isAnswering(socket)) socket.destroySoon()
}

function pathOf(url: string): string {
  const end = url.search(/[?#]/)
  return end < 0 ? url : url.slice(0, end)
}
