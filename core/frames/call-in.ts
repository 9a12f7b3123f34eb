import { isPromise } from 'node:util/types'
import { inFrame } from './frames.js'

/** Calls a listener in the frame of its plugin; what it throws is thrown anew there, after `failed`. */
export function callIn(plugin: string, call: () => unknown, failed?: () => void): void {
  inFrame(plugin, () => {
    try {
      const result = call()
      if (failed === undefined || !isPromise(result)) return
      result.catch((error: unknown) => {
        failed()
        throw error
      })
    } catch (error) {
      failed?.()
      throwInFrame(error)
    }
  })
}

/** Hands what was thrown to the process, as an error of the present frame, after who calls has gone on to the end. */
export function throwInFrame(error: unknown): void {
  // Not in the next tick: Node's parser of HTTP runs those itself, and takes what they throw for an error of its own.
  setImmediate(() => {
    throw error
  })
}
