import { inspect } from 'node:util'
import { isNativeError, isProxy, isStringObject } from 'node:util/types'
import { isProblem } from 'busbar/sdk'
import { inFrame } from './frames.js'

const longestShown = 200

/**
 * What a plugin threw, as an error whose message and stack can be read. JavaScript lets anything be thrown, `null`
 * too, and the code that reads its message would then fail in turn, as it would with an object whose getters throw.
 * Whoever gets it may be another plugin, so the one that threw is named where it is known.
 */
export function faultOf(thrown: unknown, plugin?: string): Error {
  try {
    if (isReadable(thrown)) return thrown
  } catch {
    /* its getters throw */
  }
  const by = plugin === undefined ? '' : ` by the plugin "${plugin}"`
  const fault = new Error(`something that is not an error was thrown${by}: ${shown(thrown)}`, {
    cause: typeof thrown === 'object' ? undefined : thrown
  })
  if (stackOf(fault) === '') Object.defineProperty(fault, 'stack', { value: `Error: ${fault.message}` })
  return fault
}

/** Empty where there is none: `Error.prepareStackTrace` of a library makes of a stack what it likes, or throws. */
export function stackOf(error: Error): string {
  try {
    const { stack }: { readonly stack?: unknown } = error
    return typeof stack === 'string' ? stack : ''
  } catch {
    return ''
  }
}

function isReadable(thrown: unknown): thrown is Error {
  if (isProxy(thrown) || !(thrown instanceof Error || isNativeError(thrown) || isProblem(thrown)))
    return false
  const { message, stack, name } = thrown as { message: unknown; stack: unknown; name: unknown }
  return (
    // It could answer something else the next time.
    Object.getOwnPropertyDescriptor(thrown, 'stack')?.get === engineGetter &&
    typeof message === 'string' &&
    (stack === undefined || typeof stack === 'string') &&
    (name === undefined || typeof name === 'string')
  )
}

/** Engines of today have none: the stack is a value. */
const engineGetter = Object.getOwnPropertyDescriptor(new Error('of the engine'), 'stack')?.get

/** A value of a plugin's, for a message. */
export function shown(value: unknown): string {
  try {
    if (isLarge(value)) return 'an object of many keys'
    return inspect(value, {
      depth: 1,
      breakLength: Infinity,
      customInspect: false,
      maxStringLength: longestShown
    }).slice(0, longestShown)
  } catch {
    return `${typeof value} that cannot be shown`
  }
}

const mostKeys = 1000

/** To show it takes a while, also where little of it is shown. */
function isLarge(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || isProxy(value)) return false
  // Of these little is looked at; each character of a text would be a key.
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return false
  if (isStringObject(value)) return value.length > mostKeys
  let keys = 0
  for (const _ in value) if (++keys > mostKeys) return true
  return false
}

/** Runs a plugin's code in its name; what it throws is an error, whatever that was. */
export async function callPlugin<T>(plugin: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await inFrame(plugin, work)
  } catch (error) {
    throw faultOf(error)
  }
}
