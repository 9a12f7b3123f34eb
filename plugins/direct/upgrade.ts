import { request as openRequest, ServerResponse, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { framingOf, requestHeaders, responseHeaders } from './header-rules.js'
import { refusalOf, refuse, type Refusal } from './refusal.js'
import { mayRetry, pathOf, type Route } from './route.js'

/** Forwards a request that wants to become another protocol (WebSocket), then the bytes of both sides. */
export function forwardUpgrade (route: Route, request: IncomingMessage, client: Socket, head: Buffer): void {
  client.on('error', () => client.destroy())
  client.setTimeout(0)
  client.setNoDelay(true)
  const path = pathOf(request.url ?? '')
  if (path === undefined) return refuse(plainResponse(request, client), 'badTarget')
  if (framingOf(request) !== 'none') return refuse(plainResponse(request, client), 'badCoding')
  route.meter.began()
  send(route, request, client, head, path, 1)
}

function send (route: Route, request: IncomingMessage, client: Socket, head: Buffer, path: string, attempt: number): void {
  const upstream = route.current()
  if (upstream === null) {
    route.meter.failed()
    return refuse(plainResponse(request, client), 'noTarget')
  }
  upstream.enter()
  let isWaiting = true
  let isConnected = false
  let hasLeft = false
  const leave = (): void => {
    if (!hasLeft) upstream.leave()
    hasLeft = true
  }

  const outgoing = openRequest({
    host: upstream.target.host,
    port: upstream.target.port,
    // A connection of its own: it will not come back to any pool.
    agent: false,
    method: request.method,
    path,
    headers: { ...requestHeaders(request, 'none'), Connection: 'Upgrade', Upgrade: request.headers.upgrade ?? '' },
    setHost: false
  })
  const clientGone = (): void => {
    if (isWaiting) route.meter.abandoned()
    isWaiting = false
    outgoing.destroy()
    leave()
  }
  client.once('close', clientGone)
  const connectTimer = setTimeout(() => {
    outgoing.destroy(Object.assign(new Error('connect timeout'), { code: 'E_CONNECT_TIMEOUT' }))
  }, route.limits.connectTimeoutMs)
  outgoing.on('close', () => clearTimeout(connectTimer))
  outgoing.on('socket', socket => socket.once('connect', () => {
    isConnected = true
    clearTimeout(connectTimer)
  }))

  const giveUp = (refusal: Refusal): void => {
    isWaiting = false
    route.meter.failed()
    leave()
    refuse(plainResponse(request, client), refusal)
  }
  outgoing.on('error', (error: NodeJS.ErrnoException) => {
    if (!isWaiting) return
    const hasMoved = route.current() !== null && route.current() !== upstream
    const failed = { attempt, method: 'GET', hasBody: false, wasConnected: isConnected, wasReused: false, hasMoved }
    if (!mayRetry(failed)) return giveUp(refusalOf(error, isConnected))
    leave()
    client.removeListener('close', clientGone)
    send(route, request, client, head, path, attempt + 1)
  })

  outgoing.on('upgrade', (answer, container, firstBytes) => {
    isWaiting = false
    route.meter.answered()
    client.write(switchingHead(answer))
    if (firstBytes.length > 0) client.write(firstBytes)
    if (head.length > 0) container.write(head)
    join(client, container)
    container.once('close', leave)
  })
  outgoing.on('response', answer => {
    isWaiting = false
    route.meter.answered()
    const response = plainResponse(request, client)
    answer.on('error', () => client.destroy())
    answer.once('close', leave)
    try {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, responseHeaders(answer))
    } catch {
      outgoing.destroy()
      return refuse(response, 'notHttp')
    }
    answer.pipe(response)
  })
  outgoing.end()
}

/** Bytes both ways; when one side ends, what is on its way is delivered before the other ends. */
function join (client: Socket, container: Duplex): void {
  container.on('error', () => container.destroy())
  client.pipe(container)
  container.pipe(client)
  client.once('close', () => container.destroy())
  container.once('close', () => client.destroySoon())
}

function switchingHead (answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 101 ${answer.statusMessage ?? 'Switching Protocols'}`, 'Connection: Upgrade', `Upgrade: ${answer.headers.upgrade ?? ''}`]
  for (const [name, value] of Object.entries(responseHeaders(answer))) {
    for (const one of typeof value === 'string' ? [value] : value) lines.push(`${name}: ${one}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** An ordinary answer on a socket that had asked for another protocol; the connection ends with it. */
function plainResponse (request: IncomingMessage, client: Socket): ServerResponse {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(client)
  response.on('finish', () => client.destroySoon())
  return response
}
