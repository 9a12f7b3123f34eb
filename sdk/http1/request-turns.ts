import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { soon } from './shared-turns.js'

/** What a connection may send ahead of the answer it waits for. Who pipelines at all sends some ten requests. */
const ahead = { requests: 100, characters: 64 * 1024 } as const

const turnsOf = Symbol('turns')

type Begin = (request: IncomingMessage, response: ServerResponse) => void

interface Waiting {
  readonly response: ServerResponse
  readonly begin: () => void
  /** Of its head. */
  readonly characters: number
}

interface Turns {
  /** The answer that is being given. */
  current: ServerResponse | undefined
  readonly waiting: Waiting[]
  characters: number
}

type InTurns = Socket & { [turnsOf]?: Turns }

/**
 * Calls `begin` when every earlier request of the connection has been answered (pipelining). Node hands over at once
 * whatever came in one read, which may be thousands of requests, though the answers go out one after another anyway.
 * A request that has waited begins in a turn of the event loop that leaves others theirs: see `soon`.
 * A connection that sends too much ahead ends, and what waits on it is never begun.
 */
export function inTurn(request: IncomingMessage, response: ServerResponse, begin: Begin): void {
  const socket: InTurns = request.socket
  socket[turnsOf] ??= turnsOn(socket)
  const turns = socket[turnsOf]
  if (turns.current === undefined) {
    take(turns, response)
    begin(request, response)
    return
  }
  if (isTooFarAhead(socket)) {
    socket.destroy()
    return
  }
  const characters = request.rawHeaders.reduce((sum, { length }) => sum + length, request.url?.length ?? 0)
  // The request that is answered before must not own the work for this one.
  turns.waiting.push({
    response,
    begin: AsyncResource.bind(() => {
      begin(request, response)
    }),
    characters
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

function turnsOn(socket: Socket): Turns {
  const turns: Turns = { current: undefined, waiting: [], characters: 0 }
  socket.once('close', () => {
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
  // Nothing can be answered any more.
  if (!socket.writable) turns.waiting.length = 0
  const next = turns.waiting.shift()
  if (next === undefined) return
  turns.characters -= next.characters
  take(turns, next.response)
  // Not at once: an answer that waits for nothing would have the next one begin in the same turn, and so on.
  soon(() => {
    if (turns.current === next.response && socket.writable) next.begin()
  })
}
