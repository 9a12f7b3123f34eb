/** Goes on with a value at once when it is there, or when it has come. */
export const mapAwaitable = <T, R>(
  value: T | Promise<T>,
  next: (value: T) => R | Promise<R>
): R | Promise<R> => (value instanceof Promise ? value.then(next) : next(value))
