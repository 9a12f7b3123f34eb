import { AsyncLocalStorage } from 'node:async_hooks'

/** The connection of a client that code runs for; empty once it has closed, so that nothing keeps it in memory. */
export interface Served {
  connection: { destroy(): void } | undefined
}

interface Frame {
  readonly plugin: string
  readonly served: Served | undefined
}

const frames = new AsyncLocalStorage<Frame>()

/** The owner of what the kernel does for its own connections. */
export const kernelOwner = 'kernel'

/** Runs `work` in the name of a plugin, so that what it leaves behind (timers, promises) has an owner. */
export const inFrame = <T>(plugin: string, work: () => T): T =>
  frames.run({ plugin, served: undefined }, work)

/** The same for one connection of a server of that plugin: an error that is not caught ends it. */
export const inConnection = <T>(plugin: string, served: Served, work: () => T): T =>
  frames.run({ plugin, served }, work)

/** A signal that aborts with `source`, its listeners in the name of a plugin: what they throw is that plugin's. */
export function signalInFrame(plugin: string, source: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const follow = (): void => {
    inFrame(plugin, () => {
      controller.abort(source.reason)
    })
  }
  if (source.aborted) follow()
  else source.addEventListener('abort', follow, { once: true })
  return controller.signal
}

/** The plugin in whose name the present code runs, if any. */
export const currentPlugin = (): string | undefined => frames.getStore()?.plugin

/** Where `currentPlugin` is found by a debugger, which sees what is global and no module. */
export const currentPluginKey = 'busbar.currentPlugin'
Object.defineProperty(globalThis, Symbol.for(currentPluginKey), { value: currentPlugin, configurable: true })

/** Ends the connection that the present code runs for, if any. */
export const endConnection = (): void => {
  frames.getStore()?.served?.connection?.destroy()
}
