import { isPromise } from 'node:util/types'
import { currentPlugin, inFrame } from './frames.js'
import { type Method, withMethods } from './with-methods.js'

/** Which third-party plugin an error was handed to last. */
const owners = new WeakMap<object, string>()

/**
 * The third-party plugin that the platform has handed this error to, if any. Such an error has only code of the release
 * on its stack unless each caller awaits it, and a promise that is made of it in no frame has none either.
 */
export const handedTo = (error: object): string | undefined => owners.get(error)

/**
 * Calls what the platform gives a third-party plugin, in that plugin's name also where Node has called it back in no frame,
 * and notes what it fails with as handed to it.
 */
export function handing(plugin: string, call: () => unknown): unknown {
  try {
    // The frame of a connection of the plugin's own stays.
    return noted(plugin, currentPlugin() === plugin ? call() : inFrame(plugin, call))
  } catch (error) {
    note(plugin, error)
    throw error
  }
}

function note(plugin: string, error: unknown): void {
  if (typeof error === 'object' && error !== null) owners.set(error, plugin)
}

/** The same result, whose rejection is noted. */
function noted(plugin: string, result: unknown): unknown {
  if (isPromise(result))
    return result.then(undefined, (error: unknown) => {
      note(plugin, error)
      throw error
    })
  if (isQuery(result)) noteQuery(plugin, result)
  return result
}

/** A builder of knex: it is run, and may fail, when it is awaited. */
interface Query {
  then: () => unknown
  clone: () => Query
}
const isQuery = (value: unknown): value is Query =>
  typeof value === 'object' && value !== null && 'then' in value && 'clone' in value

function noteQuery(plugin: string, query: Query): void {
  const { then, clone } = query
  const own = (value: Method): PropertyDescriptor => ({
    value,
    configurable: true,
    enumerable: false,
    writable: true
  })
  Object.defineProperty(
    query,
    'then',
    own((fulfilled, rejected) =>
      (handing(plugin, () => then.call(query)) as Promise<unknown>).then(
        fulfilled as () => unknown,
        rejected as () => unknown
      )
    )
  )
  Object.defineProperty(
    query,
    'clone',
    own(() => noted(plugin, clone.call(query)))
  )
}

/** The same service for one third-party plugin: its methods are called by `handing`. */
export const handedService = <T extends object>(plugin: string, service: T): T =>
  withMethods(service, {
    member: key => Reflect.get(service, key),
    method:
      member =>
      (...args) =>
        handing(plugin, () => Reflect.apply(member, service, args))
  })
