import { channel } from 'node:diagnostics_channel'
import type { Addition, Additions } from './additions.js'
import { callIn } from './call-in.js'
import { currentAdditions, currentPlugin, kernelOwner } from './frames.js'

type Listener = (this: unknown, ...args: unknown[]) => unknown
type Add = (event: string | symbol, listener: Listener) => unknown

/**
 * Node calls the listeners of `process` (signals, warnings) in no frame, and the subscribers of a diagnostics channel in that
 * of whoever publishes there: the connection of a client, often. So what a plugin adds there is called in its own frame, and
 * what it throws does not reach who calls: the platform's own listener of the same signal is called all the same.
 * What a third-party plugin has added goes with its run.
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

/** A listener as Node calls it. */
interface Added {
  readonly plugin: string
  readonly additions: Additions | undefined
  readonly addition: Addition
}

/** Undefined when the run has ended that adds it. */
function put(plugin: string, addition: Addition): Added | undefined {
  const additions = currentAdditions()
  if (additions === undefined) addition.put()
  else if (!additions.add(addition)) return undefined
  return { plugin, additions, addition }
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
        Reflect.apply(removeListener, emitter, [event, called])
        forget(called)
      }
      const called = (...args: unknown[]): void => {
        if (isOnce) remove()
        callIn(plugin, () => Reflect.apply(listener, emitter, args), ofErrors.has(event) ? remove : undefined)
      }
      // By this, Node finds what is removed by the function that was added.
      Object.assign(called, { listener })
      const added = put(plugin, {
        put: () => add.call(emitter, event, called),
        takeAway: () => Reflect.apply(removeListener, emitter, [event, called])
      })
      if (added !== undefined) addedListeners.set(called, added)
      return emitter
    }
    Object.defineProperty(emitter, name, { value, configurable: true, writable: true })
  }
  const { removeListener } = emitter
  for (const name of ['once', 'prependOnceListener', 'on', 'addListener', 'prependListener'] as const)
    keep(name)
  keepRemovals(emitter)
}

const addedListeners = new WeakMap<object, Added>()

function forget(called: object): void {
  const added = addedListeners.get(called)
  added?.additions?.forget(added.addition)
}

/** A plugin that clears up after itself, or after what it thinks is another program, leaves the listeners of others. */
function keepRemovals(emitter: NodeJS.Process): void {
  const { removeListener, removeAllListeners } = emitter
  /** The last one that was added, as Node has it. */
  const found = (plugin: string, event: string | symbol, listener: unknown): Listener | undefined =>
    (emitter.rawListeners(event) as Listener[]).findLast(
      raw =>
        addedListeners.get(raw)?.plugin === plugin &&
        (raw === listener || (raw as { readonly listener?: unknown }).listener === listener)
    )
  const removeOwn = (event: string | symbol, raw: Listener): void => {
    Reflect.apply(removeListener, emitter, [event, raw])
    forget(raw)
  }
  const remove = (event: string | symbol, listener: Listener): unknown => {
    const plugin = adding(listener)
    if (plugin === undefined) return Reflect.apply(removeListener, emitter, [event, listener])
    const raw = found(plugin, event, listener)
    if (raw !== undefined) removeOwn(event, raw)
    return emitter
  }
  const removeAll = (...asked: [event?: string | symbol]): unknown => {
    const plugin = adding(remove)
    if (plugin === undefined) return Reflect.apply(removeAllListeners, emitter, asked)
    for (const event of asked.length === 0 ? emitter.eventNames() : asked)
      if (event !== undefined)
        for (const raw of emitter.rawListeners(event) as Listener[])
          if (addedListeners.get(raw)?.plugin === plugin) removeOwn(event, raw)
    return emitter
  }
  for (const [name, value] of Object.entries({
    removeListener: remove,
    off: remove,
    removeAllListeners: removeAll
  }))
    Object.defineProperty(emitter, name, { value, configurable: true, writable: true })
}

interface Channel {
  subscribe(subscriber: Listener): void
  unsubscribe(subscriber: Listener): boolean
  bindStore(store: object, transform?: Listener): void
  unbindStore(store: object): boolean
}

/** What a plugin has added to a channel. */
interface AddedToChannel extends Added {
  /** What the plugin gave: a subscriber, or a store. */
  readonly given: object
}

function keepSubscribers(): void {
  // Channels without subscribers become of this class with the first.
  const probe = channel('busbar.probe')
  const none = (): void => {}
  probe.subscribe(none)
  const active = Object.getPrototypeOf(probe) as Channel
  probe.unsubscribe(none)
  const { subscribe, unsubscribe, bindStore, unbindStore } = active
  const ofChannels = new WeakMap<Channel, AddedToChannel[]>()
  const add = (on: Channel, plugin: string, given: object, addition: Addition): void => {
    const forgotten = (): void => {
      const others = (ofChannels.get(on) ?? []).filter(one => one.addition !== noted)
      if (others.length === 0) ofChannels.delete(on)
      else ofChannels.set(on, others)
    }
    const noted = { ...addition, forgotten }
    const added = put(plugin, noted)
    if (added !== undefined) ofChannels.set(on, [...(ofChannels.get(on) ?? []), { ...added, given }])
  }
  /** The last one that was added of this; it is forgotten. */
  const drop = (on: Channel, given: object): AddedToChannel | undefined => {
    const added = ofChannels.get(on)?.findLast(one => one.given === given)
    if (added === undefined) return undefined
    added.addition.forgotten?.()
    added.additions?.forget(added.addition)
    return added
  }
  // A channel that has lost its last subscriber is of the other class again, whose methods call these.
  let isPutting = false
  const putting = (putIt: () => void) => (): void => {
    isPutting = true
    try {
      putIt()
    } finally {
      isPutting = false
    }
  }
  const isActive = (one: Channel): boolean => Object.getPrototypeOf(one) === active
  active.subscribe = function (this: Channel, subscriber) {
    const plugin = isPutting ? undefined : adding(subscriber)
    if (plugin === undefined) return subscribe.call(this, subscriber)
    const called: Listener = (...args) => callIn(plugin, () => subscriber(...args))
    add(this, plugin, subscriber, {
      put: putting(() => this.subscribe(called)),
      takeAway: () => isActive(this) && unsubscribe.call(this, called)
    })
  }
  active.unsubscribe = function (this: Channel, subscriber) {
    const added = drop(this, subscriber)
    if (added === undefined) return unsubscribe.call(this, subscriber)
    added.addition.takeAway()
    return true
  }
  active.bindStore = function (this: Channel, store, transform) {
    const plugin = isPutting ? undefined : adding(none)
    if (plugin === undefined) return bindStore.call(this, store, transform)
    drop(this, store)
    add(this, plugin, store, {
      put: putting(() => this.bindStore(store, transform)),
      takeAway: () => isActive(this) && unbindStore.call(this, store)
    })
  }
  active.unbindStore = function (this: Channel, store) {
    drop(this, store)
    return unbindStore.call(this, store)
  }
}
