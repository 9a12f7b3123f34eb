import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Http1Request, isLastRequest, problemTable, type Log, type Problem } from 'busbar/sdk'
import type { ProjectAccess } from '../access/project-access.js'
import { whenLate } from '../clock/waits.js'
import { whenKnown } from '../clock/when-known.js'
import type { Settings } from '../config/environment.js'
import { sendProblem, setCommonHeaders } from './answers.js'
import { clientOf } from './client-address.js'
import { applyCors } from './cors.js'
import type { Guard } from './guard.js'
import { PlatformResponse } from './platform-response.js'
import { toProblem } from './problems.js'
import { RequestContext } from './request-context.js'
import { RouteTable } from './route-table.js'

export interface EdgeOptions {
  readonly settings: Settings
  readonly guard: Guard
  readonly projects: ProjectAccess
  readonly log: Log
}

const problems = problemTable({
  nul: [400, 'E_PATH_INVALID', 'the address must not contain NUL'],
  encoding: [400, 'E_PATH_INVALID', 'the path is not valid percent-encoding'],
  unknown: [404, 'E_NOT_FOUND', 'not found'],
  unknownPlugin: [404, 'E_NOT_FOUND', 'not found; no running plugin "{plugin}" serves this path'],
  off: [404, 'E_PLUGIN_OFF', 'the plugin "{plugin}" is off; an administrator can turn it on']
})
const expirySweepMs = 250
const malformed: Readonly<Record<string, readonly [status: string, error: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the address and the headers together are larger than 32 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not arrive in time: send it again']
}

/** The answer to what never became a request, for the bare socket. */
function refusalOf (code: string | undefined): string {
  const [status, error] = malformed[code ?? ''] ?? ['400 Bad Request', 'the request is not valid HTTP']
  const body = JSON.stringify({ error, code: 'E_REQUEST_INVALID' })
  return `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/**
 * The one HTTP server, for the life of the process. It looks a request up in the route table of the
 * moment, lets the guard decide, and hands it to the instance of the plugin that declared the route.
 */
export class Edge {
  readonly server: Server
  /** Swapped whole when plugins come and go. */
  table = new RouteTable([])
  #requests = 0
  #closing = false
  readonly #prefix = Math.random().toString(36).slice(2, 8)
  readonly #sweep: NodeJS.Timeout

  constructor (readonly options: EdgeOptions) {
    this.server = createServer({ IncomingMessage: Http1Request, ServerResponse: PlatformResponse, keepAliveTimeout: 65_000, requestTimeout: 300_000, headersTimeout: 20_000, maxHeaderSize: 32 * 1024 })
    this.server.on('request', (request, response) => { this.handle(request, response) })
    this.server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => {
      if (socket.writable) socket.end(refusalOf(code))
    })
    this.#sweep = setInterval(() => { this.#expireOverdue() }, expirySweepMs).unref()
  }

  async listen (): Promise<AddressInfo> {
    const { host, port } = this.options.settings
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(port, host, () => { this.server.off('error', reject); resolve() })
    })
    return this.server.address() as AddressInfo
  }

  /** Stops accepting, and waits for what is under way; after `timeoutMs` the rest is cut. */
  async close (timeoutMs: number): Promise<void> {
    this.#closing = true
    clearInterval(this.#sweep)
    if (!this.server.listening) return
    const closed = new Promise<void>(resolve => { this.server.close(() => { resolve() }) })
    this.server.closeIdleConnections()
    await whenLate(closed, timeoutMs, () => { this.server.closeAllConnections() })
  }

  nextRequestId (): string {
    this.#requests = (this.#requests + 1) % Number.MAX_SAFE_INTEGER
    return `${this.#prefix}-${this.#requests.toString(36)}`
  }

  handle (request: IncomingMessage, response: ServerResponse): void {
    const requestId = this.nextRequestId()
    const fail = (error: unknown): void => {
      request.resume()
      const problem = toProblem(error)
      if (problem.status >= 500) this.options.log.error({ err: error, requestId }, 'a request failed before it reached a plugin')
      sendProblem(response, problem)
    }
    try {
      const admission = this.#admit(request, response, requestId)
      if (admission instanceof Promise) admission.catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  #admit (request: IncomingMessage, response: ServerResponse, requestId: string): void | Promise<void> {
    const { settings, guard, projects } = this.options
    setCommonHeaders(response, requestId, settings.transportSecurity)
    if (this.#closing || isLastRequest(request)) response.setHeader('connection', 'close')
    if (applyCors(request, response, settings.corsOrigins)) return
    // A HEAD is a GET whose body node leaves out.
    if (request.method === 'HEAD') request.method = 'GET'
    const url = request.url ?? '/'
    // PostgreSQL stores no NUL, and no honest address holds one.
    if (url.includes('%00')) throw problems.nul()
    const path = pathOf(url)
    const match = this.table.find(request.method ?? 'GET', path)
    if (match === undefined) throw unknownPath(path)
    const { entry: { record, instance }, params } = match
    const context = new RequestContext(request, response, record, params, clientOf(request, settings.trustedProxies), requestId, projects)
    response.on('finish', () => { this.#logRequest(context) })
    if (instance === undefined) throw problems.off({ plugin: record.plugin }, { plugin: record.plugin })
    return whenKnown(guard.admit(context), isAdmitted => {
      if (isAdmitted) instance.dispatch(context)
      else request.resume()
    })
  }

  #logRequest ({ raw, response, record, requestId, startedAt, client, caller }: RequestContext): void {
    const { log } = this.options
    if (!log.isLevelEnabled('info')) return
    // The pattern instead of the path where the path itself is a secret; the query never.
    const path = record.params.includes('token') ? record.url : pathOf(raw.url ?? '')
    log.info({
      requestId,
      method: record.method,
      path,
      status: response.statusCode,
      ms: Math.round((performance.now() - startedAt) * 10) / 10,
      ip: client.ip,
      user: caller.kind === 'anonymous' ? undefined : caller.user.id
    }, 'request')
  }

  #expireOverdue (): void {
    const now = performance.now()
    for (const instance of this.table.instances) if (instance.inFlight > 0) instance.expireOverdue(now)
  }
}

function pathOf (url: string): string {
  const end = url.search(/[?#]/)
  return end < 0 ? url : url.slice(0, end)
}

function unknownPath (path: string): Problem {
  try {
    decodeURIComponent(path)
  } catch {
    return problems.encoding()
  }
  const plugin = /^\/api\/x\/([a-z][a-z0-9-]*)(\/|$)/.exec(path)?.[1]
  return plugin === undefined ? problems.unknown() : problems.unknownPlugin({ plugin })
}
