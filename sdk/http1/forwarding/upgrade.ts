import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { abandon, guardAnswer } from '../interim-answers.js'
import { pipeInTurns } from '../pipe-in-turns.js'
import { hasEarlierRequest, hasTooManyHeaders } from '../request.js'
import { type Head, readHead } from './head.js'
import { requestHeaders, responseHeaders } from './header-rules.js'
import { joinChunks } from './joined-chunks.js'
import { isFit, maxInterim, openOutgoing, TimedOut } from './outgoing.js'
import { answerItself, isClientsFault, type Refusal, refusalOf, refuse } from './refusal.js'
import {
  clientGoneStatus,
  type Forwarding,
  type ForwardingLimits,
  isRoute,
  mayMove,
  type ObservedRequest,
  type Route,
  whenDecided
} from './route.js'

/** Finds out that the other machine is gone, where nothing is sent for long. */
const probeAfterMs = 60_000

/** Forwards a request that wants to become another protocol (WebSocket), then the bytes of both sides. */
export function forwardUpgrade(
  forwarding: Forwarding,
  request: IncomingMessage,
  client: Socket,
  head: Buffer
): void {
  client.on('error', () => client.destroy())
  // Two answers cannot be on their way at once, and Node no longer queues this one behind the other.
  if (hasEarlierRequest(request, client)) {
    client.destroy()
    return
  }
  client.setTimeout(0)
  client.setNoDelay(true)
  client.setKeepAlive(true, probeAfterMs)
  const asked = readHead(request)
  if (typeof asked === 'string' || asked.framing !== 'none') {
    refuse(
      plainResponse(forwarding.limits, request, client),
      typeof asked === 'string' ? asked : 'badUpgrade'
    )
    return
  }
  const observed = forwarding.observe?.(asked, request)
  whenDecided(forwarding.decide(asked, request), route => {
    if (client.destroyed) {
      observed?.ended({ statusCode: clientGoneStatus, requestBytes: 0, responseBytes: 0 })
      return
    }
    if (!isRoute(route)) {
      const response = plainResponse(forwarding.limits, request, client)
      const responseBytes = answerItself(response, route)
      observed?.ended({ statusCode: response.statusCode, requestBytes: 0, responseBytes })
      return
    }
    route.meter.began()
    send({ route, request, client, head, asked, observed }, 1)
  })
}

/** A request that wants to become another protocol. */
interface Upgrade {
  readonly route: Route
  readonly request: IncomingMessage
  readonly client: Socket
  /** What the client has sent behind it. */
  readonly head: Buffer
  readonly asked: Head
  readonly observed: ObservedRequest | undefined
}

function send(upgrade: Upgrade, attempt: number): void {
  const { route, request, client, head, asked, observed } = upgrade
  const answerRefusal = (refusal: Refusal): void => {
    const response = plainResponse(route.limits, request, client)
    const responseBytes = refuse(response, refusal)
    observed?.ended({ statusCode: response.statusCode, requestBytes: 0, responseBytes })
  }
  const upstream = route.current()
  if (upstream === null) {
    route.meter.failed()
    answerRefusal('noTarget')
    return
  }
  upstream.enter()
  let isWaiting = true
  let isConnected = false
  let hasLeft = false
  const leave = (): void => {
    if (!hasLeft) upstream.leave()
    hasLeft = true
  }

  const giveUp = (refusal: Refusal): void => {
    isWaiting = false
    route.meter[isClientsFault(refusal) ? 'abandoned' : 'failed']()
    leave()
    answerRefusal(refusal)
  }
  const headers = requestHeaders(request, asked, route, observed?.id)
  route.rewrite?.request(headers)
  const outgoing = openOutgoing(
    upstream,
    {
      // A connection of its own: it will not come back to any pool.
      agent: false,
      method: request.method,
      path: route.rewrite?.path(asked.path) ?? asked.path,
      headers: { ...headers, Connection: 'Upgrade', Upgrade: offers(request) }
    },
    false
  )
  if (outgoing === undefined) {
    giveUp('badHead')
    return
  }
  const clientGone = (): void => {
    if (isWaiting) {
      route.meter.abandoned()
      observed?.ended({ statusCode: clientGoneStatus, requestBytes: 0, responseBytes: 0 })
    }
    isWaiting = false
    outgoing.destroy()
    leave()
  }
  client.once('close', clientGone)
  let timer = setTimeout(
    () => outgoing.destroy(new TimedOut('E_CONNECT_TIMEOUT')),
    route.limits.connectTimeoutMs
  )
  const stopTimer = (): void => clearTimeout(timer)
  outgoing.once('close', stopTimer).once('response', stopTimer).once('upgrade', stopTimer)
  outgoing.on('socket', socket =>
    socket.once('connect', () => {
      isConnected = true
      stopTimer()
      timer = setTimeout(
        () => outgoing.destroy(new TimedOut('E_ANSWER_TIMEOUT')),
        route.limits.answerTimeoutMs
      )
    })
  )

  outgoing.on('error', (error: NodeJS.ErrnoException) => {
    if (!isWaiting) return
    const hasMoved = route.current() !== null && route.current() !== upstream
    // Its connection is never a kept one.
    if (!mayMove({ attempt, wasConnected: isConnected, hasMoved }))
      return giveUp(refusalOf(error, isConnected))
    leave()
    client.removeListener('close', clientGone)
    send(upgrade, attempt + 1)
  })

  guardAnswer(
    outgoing,
    fault => {
      if (isWaiting) giveUp(fault === 'interim' ? 'endlessInterim' : 'notHttp')
    },
    maxInterim
  )
  outgoing.on('upgrade', (answer, container, firstBytes) => {
    if (hasTooManyHeaders(answer)) {
      container.destroy()
      return giveUp('notHttp')
    }
    isWaiting = false
    route.meter.answered()
    observed?.ended({ statusCode: 101, requestBytes: null, responseBytes: null })
    container.on('error', () => container.destroy())
    client.write(switchingHead(answer, route), 'latin1')
    client.write(firstBytes)
    container.write(head)
    join(client, container)
    container.once('close', leave)
  })
  outgoing.on('response', answer => {
    if (!isFit(answer)) {
      giveUp('notHttp')
      return abandon(outgoing)
    }
    isWaiting = false
    route.meter.answered()
    joinChunks(answer, client)
    const response = plainResponse(route.limits, request, client)
    let responseBytes = 0
    client.once('close', () =>
      observed?.ended({ statusCode: response.statusCode, requestBytes: 0, responseBytes })
    )
    answer.on('error', () => client.destroy())
    answer.once('close', leave)
    const answered = responseHeaders(answer, false, route)
    route.rewrite?.response(answered)
    try {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answered)
    } catch {
      outgoing.destroy()
      responseBytes = refuse(response, 'notHttp')
      return
    }
    answer.on('data', (chunk: Buffer) => {
      responseBytes += chunk.length
    })
    answer.pipe(response)
  })
}

/** The protocols that may follow; never HTTP/2, in which requests could come that were not looked at. */
const offers = ({ headers: { upgrade = '' } }: IncomingMessage): string =>
  upgrade
    .split(',')
    .map(offer => offer.trim())
    .filter(offer => offer !== '' && offer.toLowerCase() !== 'h2c')
    .join(', ')

/** Bytes both ways, in turns with those of all others; when one side ends, what is on its way is delivered before the other ends. */
function join(client: Socket, container: Duplex): void {
  pipeInTurns(client, container, client)
  pipeInTurns(container, client, client)
  client.once('close', () => container.destroy())
  container.once('close', () => client.destroySoon())
}

function switchingHead(answer: IncomingMessage, route: Route): string {
  const lines = [
    `HTTP/1.1 101 ${answer.statusMessage ?? 'Switching Protocols'}`,
    'Connection: Upgrade',
    `Upgrade: ${answer.headers.upgrade ?? ''}`
  ]
  const headers = responseHeaders(answer, false, route)
  route.rewrite?.response(headers)
  for (const [name, value] of Object.entries(headers)) {
    for (const one of typeof value === 'string' ? [value] : value) lines.push(`${name}: ${one}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** An ordinary answer on a socket that had asked for another protocol; the connection ends with it. */
function plainResponse(limits: ForwardingLimits, request: IncomingMessage, client: Socket): ServerResponse {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  // The server no longer looks after this socket: who takes nothing of the answer is disconnected here.
  client.setTimeout(limits.readerMs, () => {
    if (client.writableLength > 0) client.destroy()
  })
  response.assignSocket(client)
  response.on('finish', () => client.destroySoon())
  return response
}
