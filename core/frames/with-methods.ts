export type Method = (this: unknown, ...args: unknown[]) => unknown

interface Access {
  readonly member: (key: string | symbol) => unknown
  /** What is called in place of a method. */
  readonly method: (member: Method) => Method
}

/** The same object, whose methods are called in another way. It can be read only, and may get more of them later. */
export function withMethods<T extends object>(value: T, { member, method }: Access): T {
  const methods = new WeakMap<Method, Method>()
  // Over an empty object: a proxy must not answer otherwise for what its target has frozen.
  return new Proxy({} as T, {
    get(_target, key) {
      const found = member(key)
      if (typeof found !== 'function') return found
      const known = methods.get(found as Method) ?? method(found as Method)
      methods.set(found as Method, known)
      return known
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
