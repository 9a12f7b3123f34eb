/** Work on one key is done one after another; work on different keys does not wait. */
export function createKeyedMutex() {
  const last = new Map<string, Promise<unknown>>()
  return {
    take<T>(key: string, run: () => Promise<T>): Promise<T> {
      const before = last.get(key) ?? Promise.resolve()
      // It never rejects: a failure is told to who asked for that work, and to nobody after it.
      const mine = before.then(run)
      const settled = mine
        .then(
          () => {},
          () => {}
        )
        .finally(() => {
          if (last.get(key) === settled) last.delete(key)
        })
      last.set(key, settled)
      return mine
    }
  }
}
