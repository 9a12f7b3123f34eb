import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { giveBackAhead, takeAhead } from './ahead-budget.js'
import { clientKey } from './client-key.js'
import { isTurnUsedUp, soon } from './shared-turns.js'
import { stopParsing } from './stop-parsing.js'

/** What a connection may send ahead of the answer it waits for. Who pipelines at all sends some ten requests. */
const ahead = { requests: 100, characters: 64 * 1024 } as const

const turnsOf = Symbol('turns')

type Begin = (request: IncomingMessage, response: ServerResponse) => void

interface Waiting {
  readonly response: ServerResponse
  readonly begin: () => void
  /** Of its head. */
  readonly characters: number
  /** Whether it has a place in the budget of its client. */
  readonly isCounted: boolean
}

interface Turns {
  /** The answer that is being given. */
  current: ServerResponse | undefined
  readonly waiting: Waiting[]
  characters: number
  /** The last of those that wait is to be refused, and nothing after it is read. */
  isRefusing: boolean
}

type InTurns = Socket & { [turnsOf]?: Turns }

/**
 * Calls `begin` when every earlier request of the connection has been answered (pipelining). Node hands over at once
 * whatever came in one read, which may be thousands of requests, though the answers go out one after another anyway.
 * A request that has waited begins in a turn of the event loop that leaves others theirs: see `soon`. So does the first
 * one of a connection where those of others have used the turn up.
 * A connection that sends too much ahead ends, and what waits on it is never begun. What all connections of a client
 * send ahead is bounded too, and so is what all clients do: a request beyond it is refused in its turn, and with that
 * its connection ends: `refuse` answers it with 429, in the form of the server.
 */
export function inTurn(
  request: IncomingMessage,
  response: ServerResponse,
  begin: Begin,
  refuse: Begin = refuseBare
): void {
  const socket: InTurns = request.socket
  socket[turnsOf] ??= turnsOn(socket)
  const turns = socket[turnsOf]
  const { current } = turns
  if (current === undefined) {
    take(turns, response)
    if (isTurnUsedUp()) beginSoon(turns, response, bound(begin, request, response))
    else begin(request, response)
    return
  }
  if (isTooFarAhead(socket) || turns.isRefusing) {
    socket.destroy()
    return
  }
  const characters = request.rawHeaders.reduce((sum, { length }) => sum + length, request.url?.length ?? 0)
  // A client that has all of an answer sends nothing ahead, though this side may still wait for the end of its write.
  const isAhead = turns.waiting.length > 0 || !current.writableEnded
  const isCounted = isAhead && takeAhead(clientKey(socket))
  turns.isRefusing = isAhead && !isCounted
  if (turns.isRefusing) stopParsing(socket)
  turns.waiting.push({
    response,
    begin: bound(turns.isRefusing ? lastly(refuse) : begin, request, response),
    characters,
    isCounted
  })
  turns.characters += characters
}

/** True when the connection has sent more ahead than it may: it ends with that. */
export function isTooFarAhead(socket: InTurns): boolean {
  const turns = socket[turnsOf]
  return turns !== undefined && (turns.waiting.length > ahead.requests || turns.characters > ahead.characters)
}

/** True while a request of the connection waits for its answer. */
export const isAnswering = (socket: InTurns): boolean => socket[turnsOf]?.current !== undefined

/** Requests of the connection that were not begun. They never are when it has closed: so ask before, or in a listener of `close` of your own for `connection`. */
export const countWaiting = (socket: InTurns): number => socket[turnsOf]?.waiting.length ?? 0

function turnsOn(socket: Socket): Turns {
  const turns: Turns = { current: undefined, waiting: [], characters: 0, isRefusing: false }
  socket.once('close', () => {
    giveBackAhead(clientKey(socket), turns.waiting.filter(({ isCounted }) => isCounted).length)
    turns.waiting.length = 0
    const { current } = turns
    // Node tells a response that its connection is gone only when it had the connection, and not if it waits for it behind another.
    if (current === undefined || current.socket !== null || current.writableFinished) return
    current.destroy()
    current.emit('close')
  })
  return turns
}

/** From now on this answer is the one that is being given, though what gives it may begin later. */
function take(turns: Turns, response: ServerResponse): void {
  turns.current = response
  response.on('close', endTurn)
}

/** The same for every answer: a listener of its own would be made for each request. */
function endTurn(this: ServerResponse): void {
  const socket: InTurns = this.req.socket
  const turns = socket[turnsOf]
  if (turns?.current !== this) return
  turns.current = undefined
  // Nothing can be answered any more: what waits does so until the connection has closed.
  if (!socket.writable) return
  const next = turns.waiting.shift()
  if (next === undefined) return
  turns.characters -= next.characters
  if (next.isCounted) giveBackAhead(clientKey(socket), 1)
  take(turns, next.response)
  // Not at once: an answer that waits for nothing would have the next one begin in the same turn, and so on.
  beginSoon(turns, next.response, next.begin)
}

function beginSoon(turns: Turns, response: ServerResponse, begin: () => void): void {
  soon(() => {
    if (turns.current === response && response.req.socket.writable) begin()
  })
}

/** In the asynchronous context of now: what happens to be done before must not own the work. `AsyncResource.bind` costs several times as much. */
function bound(begin: Begin, request: IncomingMessage, response: ServerResponse): () => void {
  const context = new AsyncResource('RequestInTurn')
  return () => {
    context.runInAsyncScope(begin, undefined, request, response)
  }
}

/** In its turn, so that what was sent before it has its answers; the connection ends with it. */
const lastly =
  (refuse: Begin): Begin =>
  (request, response) => {
    response.shouldKeepAlive = false
    response.setHeader('retry-after', '1')
    refuse(request, response)
  }

function refuseBare(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(429, { 'content-length': 0 }).end()
}
