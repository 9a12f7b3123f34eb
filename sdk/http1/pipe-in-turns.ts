import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { ByteTurns } from './byte-turns.js'

/**
 * Hands on what comes `from` one side `to` the other as `from.pipe(to)` does, with backpressure and the end. All such
 * pipes share what a turn of the event loop hands on (see `ByteTurns`): what has come when that is used up is handed on as
 * well, but nothing more of it before its turn. `to` has a listener of its own for errors. Ends with `to`, or when what is returned is
 * called, as by `unpipe`.
 */
export function pipeInTurns(from: Readable, to: Writable, client: Socket): () => void {
  const turns = new ByteTurns(client)
  let isFull = to.writableNeedDrain
  let isHeld = false
  let isOver = false
  const goOn = (): void => {
    if (!isFull && !isHeld && !isOver) from.resume()
  }
  const handOn = (chunk: Buffer): void => {
    isFull = !to.write(chunk)
    if (!isHeld && turns.isUsedUp(chunk.length)) {
      isHeld = true
      turns.wait(() => {
        isHeld = false
        goOn()
      })
    }
    if (isFull || isHeld) from.pause()
  }
  const drained = (): void => {
    isFull = false
    goOn()
  }
  const end = (): void => {
    to.end()
  }
  const stop = (): void => {
    if (isOver) return
    isOver = true
    from.off('data', handOn).off('end', end).pause()
    to.off('drain', drained).off('error', stop).off('close', stop)
  }
  from.on('data', handOn).once('end', end)
  if (isFull) from.pause()
  // It may have ended, or have been paused, before.
  else if (!from.readableEnded) from.resume()
  if (from.readableEnded) process.nextTick(end)
  // Before that of the caller, who may want the rest of `from`.
  to.prependListener('error', stop).on('drain', drained).on('close', stop)
  return stop
}
