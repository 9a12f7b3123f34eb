import { isPromise } from 'node:util/types'

/** Goes on with a value at once when it is there, or when it has come. */
export const mapAwaitable = <T, R>(
  value: T | Promise<T>,
  next: (value: T) => R | Promise<R>
): R | Promise<R> => (isPromise(value) ? value.then(next) : next(value))
