import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { EngineClient } from '../engine-client.js'

/** How an answer ends before its end, as it goes over the wire. */
type Cut = (body: string) => string

const head = (framing: string, status = '200 OK'): string =>
  `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nDate: ${new Date().toUTCString()}\r\n${framing}\r\n\r\n`
const chunked = 'Transfer-Encoding: chunked'
const length = (text: string): string => `Content-Length: ${Buffer.byteLength(text)}`
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
const half = (text: string): string => text.slice(0, Math.ceil(text.length / 2))

export const whole: Cut = body => head(length(body)) + body

export const cuts: Readonly<Record<string, Cut>> = {
  'after the head, with a length': body => head(length(body)),
  'after the head, in chunks': () => head(chunked),
  'in the middle of a body with a length': body => head(length(body)) + half(body),
  'in the middle of a chunk': body => head(chunked) + half(chunk(body)),
  'between two chunks': body => head(chunked) + chunk(body),
  'in the middle of a refusal': () =>
    `${head(length('{"message":"no"}'), '500 Internal Server Error')}{"message`
}

interface CutEngine {
  readonly engine: EngineClient
  /** What was asked of it, as `GET /version`. */
  readonly asked: readonly string[]
}

interface CutEngineOptions {
  /** What is sent of the answer to one request; then the connection is closed. */
  readonly answer: (request: IncomingMessage) => string
  /** The connection stays open instead, in silence. */
  readonly staysOpen?: boolean
  readonly silenceMs?: number
}

/** A server on a socket, as an engine is, that does not finish its answers. */
export async function cutEngine(
  t: Test,
  { answer, staysOpen = false, silenceMs }: CutEngineOptions
): Promise<CutEngine> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-cut-'))
  const path = join(directory, 'docker.sock')
  const asked: string[] = []
  const sockets = new Set<Socket>()
  const reply = (request: IncomingMessage, socket: Socket): void => {
    asked.push(`${request.method} ${request.url}`)
    // The engine reads what it is sent before it is gone.
    request.resume()
    const text = answer(request)
    if (staysOpen) socket.write(text)
    else socket.end(text)
  }
  const server = createServer((request, response) => {
    if (response.socket !== null) reply(request, response.socket)
  })
  server.on('connection', socket => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
  })
  server.on('upgrade', reply)
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await rm(directory, { recursive: true, force: true })
  })
  return { engine: new EngineClient({ docker_host: `unix://${path}` }, silenceMs), asked }
}
