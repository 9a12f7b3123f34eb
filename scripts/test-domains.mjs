/**
 * What tap gets in place of `async-hook-domain`: whose test an error belongs to that nobody catches. That package asks
 * Node.js to say when each promise is born and when it is destroyed, which is a fifth of the processor
 * time of a file that boots platforms. An `AsyncLocalStorage` follows the same ways, and the platform has some at work anyway.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import process from 'node:process'

const current = new AsyncLocalStorage()
/** Node.js takes an error as handled while it has this. */
const passOnce = () => process.setUncaughtExceptionCaptureCallback(null)
const emit = process.emit

let live = 0

export class Domain {
  #isDestroyed = false
  #parent = current.getStore()

  /** @param {(error: unknown, type?: string) => void} onerror */
  constructor(onerror) {
    this.onerror = onerror
    current.enterWith(this)
    if (live++ === 0) listen()
  }

  /** From now on its errors are those of the test around it. */
  destroy() {
    if (this.#isDestroyed) return
    this.#isDestroyed = true
    if (--live === 0) unlisten()
  }

  /** The nearest that has not ended. */
  get alive() {
    return this.#isDestroyed ? this.#parent?.alive : this
  }
}

function listen() {
  process.on('uncaughtExceptionMonitor', thrown)
  process.emit = (event, ...args) => {
    // Not a listener: with one, Node.js would take every rejection as handled.
    if (event !== 'unhandledRejection' || process.listenerCount(event) > 0)
      return emit.call(process, event, ...args)
    return handle(args[0], event)
  }
}

function unlisten() {
  process.removeListener('uncaughtExceptionMonitor', thrown)
  process.emit = emit
}

function thrown(error, type) {
  if (handle(error, type)) process.setUncaughtExceptionCaptureCallback(passOnce)
}

/** Whether a test took it. Whoever listens in earnest comes before tests. */
function handle(error, type) {
  if (process.hasUncaughtExceptionCaptureCallback() || process.listenerCount('uncaughtException') > 0)
    return false
  const domain = current.getStore()?.alive
  if (domain === undefined) return false
  domain.onerror(error, type)
  return true
}
