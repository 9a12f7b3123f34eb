import { isPromise } from 'node:util/types'
import { faultOf } from './fault.js'
import { inFrame } from './frames.js'
import { type Method, withMethods } from './with-methods.js'

/**
 * What a plugin gives to others to call: the same value, whose functions run in that plugin's name for every caller,
 * and throw errors only. Anything but an object or a function is passed on as it is.
 */
export function framed<T>(plugin: string, value: T): T {
  if (typeof value === 'function') return framedMethod(plugin, value as unknown as Method) as T
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value
  return withMethods(value, {
    member: key => inFrame(plugin, () => Reflect.get(value, key, value)),
    method: member => framedMethod(plugin, member, value)
  })
}

function framedMethod(plugin: string, method: Method, owner?: object): Method {
  return (...args) => {
    try {
      const result = inFrame(plugin, () => Reflect.apply(method, owner, args))
      return isPromise(result)
        ? result.catch((error: unknown) => {
            throw faultOf(error, plugin)
          })
        : result
    } catch (error) {
      throw faultOf(error, plugin)
    }
  }
}
