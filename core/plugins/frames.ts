import { AsyncLocalStorage } from 'node:async_hooks'

const frames = new AsyncLocalStorage<string>()

/** Runs `work` in the name of a plugin, so that what it leaves behind (timers, promises) has an owner. */
export const inFrame = <T>(plugin: string, work: () => T): T => frames.run(plugin, work)

/** The plugin in whose name the present code runs, if any. */
export const currentPlugin = (): string | undefined => frames.getStore()
