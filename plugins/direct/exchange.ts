import { request as openRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { framingOf, requestHeaders, responseHeaders, type Framing } from './header-rules.js'
import { refusalOf, refuse, type Refusal } from './refusal.js'
import { mayRetry, pathOf, type Route } from './route.js'
import type { Upstream } from './upstream.js'

class TimedOut extends Error {
  constructor (readonly code: 'E_CONNECT_TIMEOUT' | 'E_ANSWER_TIMEOUT') { super(code) }
}

/** Forwards one request to the container that is current when it arrives, and its answer back. */
export function forwardRequest (route: Route, request: IncomingMessage, response: ServerResponse, options: { expectsContinue: boolean }): void {
  const path = pathOf(request.url ?? '')
  const framing = framingOf(request)
  // A client that goes away raises this; the response's `close` is where it is dealt with.
  request.on('error', () => {})
  if (path === undefined) return refuse(response, 'badTarget')
  if (framing === 'unknown') return refuse(response, 'badCoding')
  new Exchange(route, request, response, path, framing, options.expectsContinue).begin()
}

class Exchange {
  private outgoing: ClientRequest | undefined
  private upstream: Upstream | undefined
  private attempt = 0
  private isWaiting = true
  private mayBodyFlow = false
  private isClosed = false

  constructor (
    private readonly route: Route,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly path: string,
    private readonly framing: Framing,
    private readonly expectsContinue: boolean
  ) {}

  begin (): void {
    this.route.meter.began()
    this.response.on('close', () => this.closed())
    this.send()
  }

  private send (): void {
    const upstream = this.route.current()
    if (upstream === null) return this.fail('noTarget')
    this.attempt += 1
    this.upstream = upstream
    upstream.enter()

    const outgoing = openRequest({
      host: upstream.target.host,
      port: upstream.target.port,
      agent: upstream.agent,
      method: this.request.method,
      path: this.path,
      headers: requestHeaders(this.request, this.framing),
      setHost: false
    })
    this.outgoing = outgoing
    let isConnected = false
    let connectTimer: NodeJS.Timeout | undefined
    let answerTimer: NodeJS.Timeout | undefined

    outgoing.on('socket', socket => {
      const connected = (): void => {
        isConnected = true
        clearTimeout(connectTimer)
        this.sendBody(outgoing)
      }
      if (!socket.connecting) return connected()
      socket.once('connect', connected)
      connectTimer = setTimeout(() => outgoing.destroy(new TimedOut('E_CONNECT_TIMEOUT')), this.route.limits.connectTimeoutMs)
    })
    outgoing.on('finish', () => {
      if (!this.isWaiting) return
      answerTimer = setTimeout(() => outgoing.destroy(new TimedOut('E_ANSWER_TIMEOUT')), this.route.limits.answerTimeoutMs)
    })
    outgoing.on('continue', () => {
      this.mayBodyFlow = true
      if (this.expectsContinue) this.response.writeContinue()
    })
    outgoing.on('response', answer => {
      clearTimeout(answerTimer)
      this.answer(answer, outgoing)
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (this.outgoing !== outgoing || !this.isWaiting) return
      const failed = {
        attempt: this.attempt,
        method: this.request.method ?? '',
        hasBody: this.framing !== 'none',
        wasConnected: isConnected,
        wasReused: outgoing.reusedSocket,
        hasMoved: this.route.current() !== null && this.route.current() !== upstream
      }
      if (!mayRetry(failed)) return this.fail(refusalOf(error, isConnected))
      this.leave()
      this.send()
    })
    outgoing.on('close', () => {
      clearTimeout(connectTimer)
      clearTimeout(answerTimer)
      // An unasked change of protocol (101) ends without an answer and without an error.
      if (this.outgoing === outgoing && this.isWaiting) this.fail('notHttp')
    })
    if (this.framing === 'none') outgoing.end()
    else outgoing.flushHeaders()
  }

  /** The body is taken from the client only once a container is there to take it. */
  private sendBody (outgoing: ClientRequest): void {
    if (this.framing !== 'none') this.request.pipe(outgoing)
  }

  private answer (answer: IncomingMessage, outgoing: ClientRequest): void {
    this.isWaiting = false
    this.route.meter.answered()
    const { response } = this
    response.sendDate = false
    const headers = responseHeaders(answer)
    // Without a `continue` the client may never send its body: the connection cannot be used again.
    if (this.expectsContinue && !this.mayBodyFlow) headers['Connection'] = 'close'
    try {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headers)
    } catch {
      outgoing.destroy()
      return refuse(response, 'notHttp')
    }
    let hasBegun = false
    answer.once('data', () => { hasBegun = true })
    // A stream of events sends its head long before its first event.
    setImmediate(() => { if (!hasBegun && !response.writableEnded && !response.destroyed) response.flushHeaders() })
    answer.once('end', () => response.addTrailers(answer.trailers))
    answer.once('error', () => { if (!this.isClosed) this.route.meter.cut() })
    pipeline(answer, response, () => {
      if (this.framing === 'none' || outgoing.writableEnded) return
      // The container answered without reading everything: the rest is nobody's, and the connection is of no more use.
      this.request.unpipe(outgoing)
      this.request.resume()
      outgoing.destroy()
    })
  }

  private fail (refusal: Refusal): void {
    if (this.isWaiting) this.route.meter.failed()
    this.isWaiting = false
    this.request.resume()
    refuse(this.response, refusal)
  }

  private closed (): void {
    this.isClosed = true
    if (this.isWaiting) {
      this.isWaiting = false
      this.route.meter.abandoned()
    }
    if (!this.response.writableFinished) this.outgoing?.destroy()
    this.leave()
  }

  private leave (): void {
    this.upstream?.leave()
    this.upstream = undefined
  }
}
