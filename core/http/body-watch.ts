import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type BodyKind, networkOf, Problem, problemTable } from 'busbar/sdk'
import { sendProblem } from './answers.js'
import { tooLarge } from './problems.js'
import { isBodyComing } from './unread-body.js'

/** What is watched of a request: how its body is read, how much of it, and whose it is. */
export interface WatchedBody {
  readonly kind: BodyKind
  readonly limit: number
  readonly ip: string
}

const kibibyte = 1024
const mebibyte = 1024 * kibibyte

/** How slowly a body may come: after the grace, so many bytes for each second since its head. */
const bodyPace = {
  whole: { graceMs: 10_000, bytesPerSecond: 16 * kibibyte },
  stream: { graceMs: 30_000, bytesPerSecond: kibibyte }
} as const

/** What bodies that are read into memory may take together while they are on their way. */
export const bodyMemory = { perAddress: 32 * mebibyte, inAll: 256 * mebibyte } as const

/** Framing and heads that count as bytes of the socket. */
const slackBytes = 64 * kibibyte

const problems = problemTable({
  late: [408, 'E_REQUEST_INVALID', 'the request did not arrive in time', 'send it again'],
  busy: [503, 'E_BODIES_BUSY', 'too many bodies are on their way', 'try again in a few seconds']
})

/** Whether a body comes too slowly, or goes on after its reading has ended. */
export function judgeBody(
  { kind, limit }: Pick<WatchedBody, 'kind' | 'limit'>,
  elapsedMs: number,
  bytes: number
): 'fine' | 'late' | 'long' {
  const { graceMs, bytesPerSecond } = kind === 'stream' ? bodyPace.stream : bodyPace.whole
  if (bytes < ((elapsedMs - graceMs) / 1000) * bytesPerSecond) return 'late'
  return kind === 'none' && bytes > limit + slackBytes ? 'long' : 'fine'
}

interface Entry extends WatchedBody {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly bytesBefore: number
  readonly reserved: number
  readonly network: string
  readonly socket: Socket
  readonly forget: () => void
  waitedMs: number
  seenAt: number
}

/**
 * The requests whose bodies are on their way. Node has one limit for the time of a whole request, which is either too
 * long for a client that sends nothing or too short for an upload; here each must keep a pace. What is read into memory
 * is accounted for before a byte of it is read.
 */
export class BodyWatch {
  readonly #entries = new Map<IncomingMessage, Entry>()
  readonly #reserved = new Map<string, number>()
  #reservedInAll = 0

  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  /** From now on the body keeps its pace; throws 503 when there is no room for it. */
  add(request: IncomingMessage, response: ServerResponse, body: WatchedBody): void {
    if (!isBodyComing(request) || this.#entries.has(request)) return
    const network = networkOf(body.ip)
    const reserved =
      body.kind === 'json' || body.kind === 'raw'
        ? Math.min(Number(request.headers['content-length'] ?? body.limit), body.limit)
        : 0
    const ofNetwork = this.#reserved.get(network) ?? 0
    if (ofNetwork + reserved > bodyMemory.perAddress || this.#reservedInAll + reserved > bodyMemory.inAll) {
      const { status, code, message, details } = problems.busy()
      throw new Problem(status, code, message, details, { 'retry-after': '2' })
    }
    this.#reserved.set(network, ofNetwork + reserved)
    this.#reservedInAll += reserved
    const { socket } = request
    const forget = (): void => this.#forget(request)
    this.#entries.set(request, {
      ...body,
      request,
      response,
      network,
      socket,
      forget,
      reserved,
      bytesBefore: socket.bytesRead,
      waitedMs: 0,
      seenAt: performance.now()
    })
    request.once('close', forget)
    // Of its connection's end a request is not told any more once it has been answered.
    socket.once('close', forget)
  }

  /** To be called a few times a second. */
  sweep(now: number): void {
    for (const entry of [...this.#entries.values()]) {
      const { request } = entry
      if (request.complete || request.destroyed) {
        this.#forget(request)
        continue
      }
      // A handler that does not read a stream holds up the client, not the other way round.
      if (request.readableLength < request.readableHighWaterMark) entry.waitedMs += now - entry.seenAt
      entry.seenAt = now
      const verdict = judgeBody(entry, entry.waitedMs, request.socket.bytesRead - entry.bytesBefore)
      if (verdict === 'late') this.#end(entry, problems.late())
      if (verdict === 'long') this.#end(entry, tooLarge(entry))
    }
  }

  #end({ request, response }: Entry, problem: Problem): void {
    this.#forget(request)
    if (response.headersSent) {
      request.destroy()
      return
    }
    response.setHeader('connection', 'close')
    response.once('finish', () => {
      request.destroy()
    })
    sendProblem(response, problem)
  }

  #forget(request: IncomingMessage): void {
    const entry = this.#entries.get(request)
    if (entry === undefined) return
    this.#entries.delete(request)
    request.removeListener('close', entry.forget)
    entry.socket.removeListener('close', entry.forget)
    this.#reservedInAll -= entry.reserved
    const left = (this.#reserved.get(entry.network) ?? 0) - entry.reserved
    if (left > 0) this.#reserved.set(entry.network, left)
    else this.#reserved.delete(entry.network)
  }
}
