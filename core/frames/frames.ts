import { AsyncLocalStorage } from 'node:async_hooks'
import { type Additions, additionsOfRun } from './additions.js'

/** In whose name code runs. */
export interface Frame {
  readonly plugin: string
  /** The connection of a client that it runs for, if any; empty once that has closed, so that nothing keeps it in memory. */
  connection: { destroy(): void } | undefined
  /** Of the module or the run whose code it is, where the plugin alone does not say it: while that begins. */
  readonly additions?: Additions
}

const frames = new AsyncLocalStorage<Frame>()

/** Made once for each plugin: to enter the frame that one is in already costs next to nothing. */
const ofPlugins = new Map<string, Frame>()

function frameOf(plugin: string): Frame {
  let frame = ofPlugins.get(plugin)
  if (frame === undefined) {
    frame = Object.freeze({ plugin, connection: undefined })
    ofPlugins.set(plugin, frame)
  }
  return frame
}

/** The owner of what the kernel does for its own connections. */
export const kernelOwner = 'kernel'

/** Runs `work` in the name of a plugin, so that what it leaves behind (timers, promises) has an owner. */
export const inFrame = <T>(plugin: string, work: () => T): T => frames.run(frameOf(plugin), work)

/** The same for code of one module or run of it. */
export const inBeginning = <T>(plugin: string, additions: Additions, work: () => T): T =>
  frames.run({ plugin, connection: undefined, additions }, work)

/** Where what the present code puts where it is everybody's belongs, if it is that of a third-party plugin. */
export function currentAdditions(): Additions | undefined {
  const frame = frames.getStore()
  return frame && (frame.additions ?? additionsOfRun(frame.plugin))
}

/** The same for one connection of a server of that plugin: an error that is not caught ends it. */
export const inConnection = <T>(frame: Frame, work: () => T): T => frames.run(frame, work)

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
  frames.getStore()?.connection?.destroy()
}
