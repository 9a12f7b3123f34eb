import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { abandon, guardAnswer } from '../interim-answers.js'
import { pipeInTurns } from '../pipe-in-turns.js'
import { type Head, readHead } from './head.js'
import { requestHeaders, responseHeaders, responseTrailers } from './header-rules.js'
import { joinChunks } from './joined-chunks.js'
import { isFit, maxInterim, openOutgoing, TimedOut } from './outgoing.js'
import { answerItself, isClientsFault, type Refusal, refusalOf, refuse } from './refusal.js'
import {
  clientGoneStatus,
  type Forwarding,
  isRoute,
  mayRetry,
  type ObservedRequest,
  type Route,
  whenDecided
} from './route.js'
import type { Upstream } from './upstream.js'

const bodiless = new Set([204, 205, 304])

/** Forwards one request to the container that is current when it arrives, and its answer back. */
export function forwardRequest(
  forwarding: Forwarding,
  request: IncomingMessage,
  response: ServerResponse,
  options: { expectsContinue: boolean }
): void {
  // A client that goes away raises this; the response's `close` is where it is dealt with.
  request.on('error', () => {})
  const head = readHead(request)
  if (typeof head === 'string') {
    refuse(response, head)
    return
  }
  const observed = forwarding.observe?.(head, request)
  whenDecided(forwarding.decide(head, request), route => {
    if (response.destroyed) {
      observed?.ended({ statusCode: clientGoneStatus, requestBytes: 0, responseBytes: 0 })
      return
    }
    if (!isRoute(route)) {
      // The body of a request that is not handed on is read for a while, or the client would not see the answer.
      request.resume()
      const responseBytes = answerItself(response, route)
      observed?.ended({ statusCode: statusOf(response), requestBytes: 0, responseBytes })
      return
    }
    new Exchange(route, request, response, head, options.expectsContinue, observed).begin()
  })
}

const statusOf = ({ headersSent, statusCode }: ServerResponse): number =>
  headersSent ? statusCode : clientGoneStatus

class Exchange {
  private outgoing: ClientRequest | undefined
  private upstream: Upstream | undefined
  private attempt = 0
  private isWaiting = true
  private mayBodyFlow = false
  private isClosed = false
  private requestBytes = 0
  private responseBytes = 0
  private stopBody = (): void => {}

  constructor(
    private readonly route: Route,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly head: Head,
    private readonly expectsContinue: boolean,
    private readonly observed: ObservedRequest | undefined
  ) {}

  private get hasBody(): boolean {
    return this.head.framing !== 'none'
  }

  begin(): void {
    this.route.meter.began()
    this.response.once('close', this.closed)
    this.send()
  }

  private send(): void {
    const upstream = this.route.current()
    if (upstream === null) {
      this.fail('noTarget')
      return
    }
    this.attempt += 1
    this.upstream = upstream
    upstream.enter()

    const { method } = this.request
    const headers = requestHeaders(this.request, this.head, this.route, this.observed?.id)
    this.route.rewrite?.request(headers)
    const outgoing = openOutgoing(
      upstream,
      {
        agent: upstream.agent,
        method,
        path: this.route.rewrite?.path(this.head.path) ?? this.head.path,
        headers
      },
      this.hasBody
    )
    if (outgoing === undefined) {
      this.fail('badHead')
      return
    }
    this.outgoing = outgoing
    let isConnected = false
    let connectTimer: NodeJS.Timeout | undefined
    let answerTimer: NodeJS.Timeout | undefined

    outgoing.on('socket', socket => {
      const connected = (): void => {
        isConnected = true
        clearTimeout(connectTimer)
        answerTimer = setTimeout(
          () => outgoing.destroy(this.silence(outgoing)),
          this.route.limits.answerTimeoutMs
        )
        this.sendBody(outgoing, answerTimer)
      }
      if (!socket.connecting) return connected()
      socket.once('connect', connected)
      connectTimer = setTimeout(
        () => outgoing.destroy(new TimedOut('E_CONNECT_TIMEOUT')),
        this.route.limits.connectTimeoutMs
      )
    })
    outgoing.on('continue', () => {
      if (this.expectsContinue && !this.mayBodyFlow && this.isWaiting) this.response.writeContinue()
      this.mayBodyFlow = true
    })
    guardAnswer(
      outgoing,
      fault => {
        if (this.outgoing === outgoing && this.isWaiting)
          this.fail(fault === 'interim' ? 'endlessInterim' : 'notHttp')
      },
      maxInterim
    )
    outgoing.on('response', answer => {
      clearTimeout(answerTimer)
      if (!isFit(answer)) {
        this.fail('notHttp')
        return abandon(outgoing)
      }
      this.answer(answer, outgoing)
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (this.outgoing !== outgoing || !this.isWaiting) return
      const failed = {
        attempt: this.attempt,
        method: this.request.method ?? '',
        hasBody: this.hasBody,
        hasTimedOut: error instanceof TimedOut,
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
    })
  }

  /** The body is taken from the client only once a container is there to take it. */
  private sendBody(outgoing: ClientRequest, answerTimer: NodeJS.Timeout): void {
    if (!this.hasBody) return
    this.stopBody = pipeInTurns(this.request, outgoing, this.request.socket)
    this.request.on('data', (chunk: Buffer) => {
      this.requestBytes += chunk.length
      if (this.isWaiting) answerTimer.refresh()
    })
  }

  /** Who is waited for: the client when the container would take more of the body. */
  private silence(outgoing: ClientRequest): TimedOut {
    const isClients =
      this.hasBody &&
      !this.request.complete &&
      !outgoing.writableNeedDrain &&
      !(this.expectsContinue && !this.mayBodyFlow)
    return new TimedOut(isClients ? 'E_BODY_TIMEOUT' : 'E_ANSWER_TIMEOUT')
  }

  private answer(answer: IncomingMessage, outgoing: ClientRequest): void {
    this.isWaiting = false
    this.route.meter.answered()
    joinChunks(answer, this.request.socket)
    const { response } = this
    response.sendDate = false
    const hasTrailers =
      this.request.method !== 'HEAD' &&
      this.request.httpVersion === '1.1' &&
      !bodiless.has(answer.statusCode ?? 0)
    const headers = responseHeaders(answer, hasTrailers, this.route)
    this.route.rewrite?.response(headers)
    // Without a `continue` the client may never send its body: the connection cannot be used again.
    if (this.expectsContinue && !this.mayBodyFlow) headers.Connection = 'close'
    try {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headers)
    } catch {
      outgoing.destroy()
      this.responseBytes += refuse(response, 'notHttp')
      return
    }
    let hasBegun = false
    answer.on('data', (chunk: Buffer) => {
      hasBegun = true
      this.responseBytes += chunk.length
    })
    // A stream of events sends its head long before its first event.
    setImmediate(() => {
      if (!hasBegun && !response.writableEnded && !response.destroyed) response.flushHeaders()
    })
    if (hasTrailers) answer.once('end', () => this.addTrailers(answer))
    answer.once('error', () => {
      if (!this.isClosed) this.route.meter.cut()
    })
    pipeline(answer, response, () => {
      if (!this.hasBody || outgoing.writableEnded) return
      // The container answered without reading everything: the rest is dropped, and the connection is of no more use.
      this.stopBody()
      this.request.resume()
      outgoing.destroy()
    })
  }

  private addTrailers(answer: IncomingMessage): void {
    try {
      this.response.addTrailers(responseTrailers(answer))
    } catch {
      // Node's parser took what node will not write.
      this.response.destroy()
    }
  }

  private fail(refusal: Refusal): void {
    if (this.isWaiting) this.route.meter[isClientsFault(refusal) ? 'abandoned' : 'failed']()
    this.isWaiting = false
    this.stopBody()
    this.request.resume()
    this.responseBytes += refuse(this.response, refusal)
  }

  private readonly closed = (): void => {
    if (this.isClosed) return
    this.isClosed = true
    this.observed?.ended({
      statusCode: statusOf(this.response),
      requestBytes: this.requestBytes,
      responseBytes: this.responseBytes
    })
    if (this.isWaiting) {
      this.isWaiting = false
      this.route.meter.abandoned()
    }
    if (!this.response.writableFinished) this.outgoing?.destroy()
    this.leave()
    if (!this.request.complete) this.linger()
  }

  /** The rest of a body that is not used is read for a while, or the client would not see the answer. */
  private linger(): void {
    const { socket } = this.request
    if (socket.destroyed) return
    const timer = setTimeout(() => socket.destroy(), this.route.limits.lingerMs)
    const stop = (): void => {
      clearTimeout(timer)
      socket.removeListener('close', stop)
    }
    this.request.once('end', stop)
    // The request itself is not told any more, once it has been answered.
    socket.once('close', stop)
  }

  private leave(): void {
    this.upstream?.leave()
    this.upstream = undefined
  }
}
