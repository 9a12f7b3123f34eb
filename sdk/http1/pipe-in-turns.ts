import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { TurnQueue } from '../turn-queue.js'
import { clientKey } from './client-key.js'

/** What all pipes of the process together hand on in one turn of the event loop: some milliseconds of it. */
const bytesPerTurn = 1024 * 1024
/** What one read of a socket brings. Node reads a socket up to 32 times before it looks at another one. */
const bytesPerRead = 64 * 1024

/** Those that have come when the turn was used up. */
const held = new TurnQueue()
let spent = 0
let isPlanned = false

/**
 * Hands on what comes `from` one side `to` the other as `from.pipe(to)` does, with backpressure and the end. All such
 * pipes share what a turn of the event loop hands on: what has come when that is used up is handed on as well, but
 * nothing more is read there before its turn. The pipes of a client's connections take turns like one, and those that
 * have handed on little since their last turn go first.
 */
export function pipeInTurns(from: Readable, to: Writable, client: Socket): void {
  const owner = clientKey(client) ?? client
  let isFull = to.writableNeedDrain
  let isHeld = false
  let ofTurn = 0
  const goOn = (): void => {
    if (!isFull && !isHeld) from.resume()
  }
  const handOn = (chunk: Buffer): void => {
    isFull = !to.write(chunk)
    ofTurn += chunk.length
    if (!isHeld && isUsedUp(chunk.length)) {
      isHeld = true
      held.add({
        owner,
        hasUsedTurn: ofTurn >= bytesPerRead,
        goOn: () => {
          isHeld = false
          ofTurn = 0
          goOn()
        }
      })
    }
    if (isFull || isHeld) from.pause()
  }
  from.on('data', handOn)
  if (isFull) from.pause()
  from.once('end', () => to.end())
  to.on('drain', () => {
    isFull = false
    goOn()
  })
  to.once('close', () => {
    from.off('data', handOn)
    from.pause()
  })
}

/** Counts what has been handed on, and says whether that was the last of this turn. */
function isUsedUp(bytes: number): boolean {
  spent += bytes
  plan()
  return spent >= bytesPerTurn
}

function plan(): void {
  if (isPlanned) return
  isPlanned = true
  setImmediate(beginTurn)
}

function beginTurn(): void {
  isPlanned = false
  spent = 0
  for (let bytes = 0; bytes < bytesPerTurn && !held.isEmpty; bytes += bytesPerRead) held.take()?.goOn()
  if (!held.isEmpty) plan()
}
