import { subscribe } from 'node:diagnostics_channel'
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import perfHooks from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { callIn, throwInFrame } from './call-in.js'
import { contain, isContained } from './contained-emitter.js'
import { currentPlugin, inFrame, kernelOwner } from './frames.js'
import type { Method } from './with-methods.js'

/**
 * Node leaves the frame of some callbacks before it hands over what they have thrown, and calls others in no frame. An error may
 * still name its plugin by its stack; a value that is no error names nobody, and neither does an error that Node has made itself.
 * So these callbacks hand it over in the frame of the plugin that has given them.
 */
export function keepCallbacksInFrames(): void {
  if (isKept) return
  isKept = true
  define(globalThis, 'queueMicrotask', keepingFrame(globalThis.queueMicrotask as Method))
  for (const name of Object.getOwnPropertyNames(dns.Resolver.prototype).filter(isLookup)) {
    // Those of the module are bound to a resolver of its own.
    for (const owner of [dns.Resolver.prototype, dns] as unknown as Array<Record<string, Method>>) {
      const method = owner[name]
      if (method !== undefined) define(owner, name, keepingFrame(method))
    }
  }
  define(globalThis, 'FinalizationRegistry', callingInFrame(FinalizationRegistry))
  const observer = callingInFrame(perfHooks.PerformanceObserver)
  for (const owner of [globalThis, perfHooks]) define(owner, 'PerformanceObserver', observer)
  syncBuiltinESMExports()
  subscribe('worker_threads', workerBegins)
}

// As the frames themselves, it is of the process and not of a kernel.
let isKept = false

const isLookup = (name: string): boolean => /^(resolve|reverse)/.test(name)

function define(owner: object, name: string, value: unknown): void {
  Object.defineProperty(owner, name, { value, configurable: true, writable: true })
}

const owner = (): string | undefined => {
  const plugin = currentPlugin()
  return plugin === kernelOwner ? undefined : plugin
}

/** The same function, whose callback is called in its frame and throws there. The callback is the last argument. */
const keepingFrame = (method: Method): Method =>
  function (...args) {
    const callback = args.at(-1)
    if (owner() === undefined || typeof callback !== 'function') return Reflect.apply(method, this, args)
    const kept: Method = function (...given) {
      try {
        return Reflect.apply(callback, this, given)
      } catch (error) {
        throwInFrame(error)
      }
    }
    return Reflect.apply(method, this, [...args.slice(0, -1), kept])
  }

/** The same class, whose callback, the first argument, is called in the frame in which an instance is made. */
function callingInFrame<Class extends new (...args: never[]) => object>(original: Class): Class {
  return new Proxy(original, {
    construct(target, args: unknown[], newTarget) {
      const [callback, ...others] = args
      const plugin = owner()
      if (plugin === undefined || typeof callback !== 'function')
        return Reflect.construct(target, args, newTarget)
      const called: Method = function (...given) {
        callIn(plugin, () => Reflect.apply(callback, this, given))
      }
      return Reflect.construct(target, [called, ...others], newTarget)
    }
  })
}

function workerBegins(message: unknown): void {
  const { worker } = message as { worker: unknown }
  const plugin = owner()
  if (plugin === undefined || !(worker instanceof Worker) || isContained(worker)) return
  contain(worker, (_args, emit) => (currentPlugin() === plugin ? emit() : inFrame(plugin, emit)))
}
