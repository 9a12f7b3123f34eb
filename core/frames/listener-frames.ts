import { channel } from 'node:diagnostics_channel'
import { currentPlugin, inFrame, kernelOwner } from './frames.js'

type Listener = (this: unknown, ...args: unknown[]) => unknown
type Add = (event: string | symbol, listener: Listener) => unknown

/**
 * Node calls the listeners of `process` (signals, warnings) in no frame, and the subscribers of a diagnostics channel in that
 * of whoever publishes there: the connection of a client, often. So what a plugin adds there is called in its own frame, and
 * what it throws does not reach who calls: the platform's own listener of the same signal is called all the same.
 */
export function keepListenersInFrames(): void {
  if (isKept) return
  isKept = true
  keepListenersOf(process)
  keepSubscribers()
}

// As the frames themselves, it is of the process and not of a kernel.
let isKept = false

/** What is emitted for an uncaught error: a listener that fails would be called for that again, and for ever. */
const ofErrors: ReadonlySet<string | symbol> = new Set([
  'uncaughtException',
  'uncaughtExceptionMonitor',
  'unhandledRejection'
])

/** The plugin that adds a listener now, unless it is none. */
const adding = (listener: unknown): string | undefined => {
  const plugin = currentPlugin()
  return plugin === kernelOwner || typeof listener !== 'function' ? undefined : plugin
}

function keepListenersOf(emitter: NodeJS.Process): void {
  const keep = (name: 'on' | 'addListener' | 'once' | 'prependListener' | 'prependOnceListener'): void => {
    const original = emitter[name] as Add
    const isOnce = name === 'once' || name === 'prependOnceListener'
    const add = (isOnce ? emitter[name === 'once' ? 'on' : 'prependListener'] : original) as Add
    const value = (event: string | symbol, listener: Listener): unknown => {
      const plugin = adding(listener)
      if (plugin === undefined) return original.call(emitter, event, listener)
      const remove = (): void => {
        emitter.removeListener(event, called)
      }
      const called = (...args: unknown[]): void => {
        if (isOnce) remove()
        callIn(plugin, () => Reflect.apply(listener, emitter, args), ofErrors.has(event) ? remove : undefined)
      }
      addedBy.set(called, plugin)
      // By this, Node finds what is removed by the function that was added.
      return add.call(emitter, event, Object.assign(called, { listener }))
    }
    Object.defineProperty(emitter, name, { value, configurable: true, writable: true })
  }
  for (const name of ['once', 'prependOnceListener', 'on', 'addListener', 'prependListener'] as const)
    keep(name)
  keepRemovals(emitter)
}

/** By listener as Node calls it. */
const addedBy = new WeakMap<object, string>()

/** A plugin that clears up after itself, or after what it thinks is another program, leaves the listeners of others. */
function keepRemovals(emitter: NodeJS.Process): void {
  const { removeListener, removeAllListeners } = emitter
  const isOf = (plugin: string, event: string | symbol, listener: unknown): boolean =>
    emitter
      .rawListeners(event)
      .some(
        raw =>
          addedBy.get(raw) === plugin &&
          (raw === listener || (raw as { readonly listener?: unknown }).listener === listener)
      )
  const remove = (event: string | symbol, listener: Listener): unknown => {
    const plugin = adding(listener)
    return plugin === undefined || isOf(plugin, event, listener)
      ? Reflect.apply(removeListener, emitter, [event, listener])
      : emitter
  }
  const removeAll = (...asked: [event?: string | symbol]): unknown => {
    const plugin = adding(remove)
    if (plugin === undefined) return Reflect.apply(removeAllListeners, emitter, asked)
    for (const event of asked.length === 0 ? emitter.eventNames() : asked)
      for (const raw of event === undefined ? [] : emitter.rawListeners(event))
        if (addedBy.get(raw) === plugin) Reflect.apply(removeListener, emitter, [event, raw])
    return emitter
  }
  for (const [name, value] of Object.entries({
    removeListener: remove,
    off: remove,
    removeAllListeners: removeAll
  }))
    Object.defineProperty(emitter, name, { value, configurable: true, writable: true })
}

interface Subscribable {
  subscribe(subscriber: Listener): void
  unsubscribe(subscriber: Listener): boolean
}

function keepSubscribers(): void {
  // Channels without subscribers become of this class with the first.
  const probe = channel('busbar.probe')
  const none = (): void => {}
  probe.subscribe(none)
  const active = Object.getPrototypeOf(probe) as Subscribable
  probe.unsubscribe(none)
  const { subscribe, unsubscribe } = active
  const kept = new WeakMap<Listener, Listener>()
  active.subscribe = function (this: Subscribable, subscriber) {
    const plugin = adding(subscriber)
    if (plugin === undefined) return subscribe.call(this, subscriber)
    const called = kept.get(subscriber) ?? ((...args) => callIn(plugin, () => subscriber(...args)))
    kept.set(subscriber, called)
    return subscribe.call(this, called)
  }
  active.unsubscribe = function (this: Subscribable, subscriber) {
    const called = kept.get(subscriber)
    return (called !== undefined && unsubscribe.call(this, called)) || unsubscribe.call(this, subscriber)
  }
}

/** Calls a listener in the frame of its plugin; what it throws is thrown anew there, after `failed`. */
function callIn(plugin: string, call: () => unknown, failed?: () => void): void {
  inFrame(plugin, () => {
    try {
      const result = call()
      if (failed === undefined || !(result instanceof Promise)) return
      result.catch((error: unknown) => {
        failed()
        throw error
      })
    } catch (error) {
      failed?.()
      // Not in the next tick: Node's parser of HTTP runs those itself, and takes what they throw for an error of its own.
      setImmediate(() => {
        throw error
      })
    }
  })
}
