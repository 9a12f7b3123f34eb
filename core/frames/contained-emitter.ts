import type { EventEmitter } from 'node:events'
import { throwInFrame } from './call-in.js'
import { endConnection } from './frames.js'

const contained = Symbol('its events are emitted in a frame')

export const isContained = (emitter: EventEmitter): boolean => contained in emitter

export type Run = (args: readonly unknown[], emit: () => boolean, event: string | symbol) => boolean

/** From now on the events of `emitter` are emitted by `run`, and what their listeners throw does not reach who emits. */
export function contain(emitter: EventEmitter, run: Run): void {
  const original = emitter.emit
  const emit = (event: string | symbol, ...args: unknown[]): boolean =>
    run(
      args,
      () => {
        try {
          return original.call(emitter, event, ...args)
        } catch (error) {
          endConnection()
          // The code of Node that emits must go on to its end, its parser with the rest of what came.
          throwInFrame(error)
          return false
        }
      },
      event
    )
  Object.assign(emitter, { emit, [contained]: true })
}
