import { faultOf } from './fault.js'
import { inFrame } from './frames.js'

type Method = (this: unknown, ...args: unknown[]) => unknown

/**
 * What a plugin gives to others to call: the same value, whose functions run in that plugin's name for every caller,
 * and throw errors only. Anything but an object or a function is passed on as it is.
 */
export function framed<T>(plugin: string, value: T): T {
  if (typeof value === 'function') return framedMethod(plugin, value as unknown as Method) as T
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value
  const methods = new WeakMap<Method, Method>()
  // Over an empty object: a proxy must not answer otherwise for what its target has frozen.
  return new Proxy({} as T & object, {
    get(_target, key) {
      const member: unknown = inFrame(plugin, () => Reflect.get(value, key, value))
      if (typeof member !== 'function') return member
      const method = methods.get(member as Method) ?? framedMethod(plugin, member as Method, value)
      methods.set(member as Method, method)
      return method
    },
    has: (_target, key) => Reflect.has(value, key),
    ownKeys: () => Reflect.ownKeys(value),
    getOwnPropertyDescriptor: (_target, key) => {
      const own = Reflect.getOwnPropertyDescriptor(value, key)
      return own && { ...own, configurable: true }
    },
    getPrototypeOf: () => Reflect.getPrototypeOf(value),
    set: () => false
  })
}

function framedMethod(plugin: string, method: Method, owner?: object): Method {
  return (...args) => {
    try {
      const result = inFrame(plugin, () => Reflect.apply(method, owner, args))
      return result instanceof Promise
        ? result.catch((error: unknown) => {
            throw faultOf(error)
          })
        : result
    } catch (error) {
      throw faultOf(error)
    }
  }
}
