/** How long one piece of a long work may hold the event loop. */
const sliceMs = 5

/** Does the work behind `steps`, letting the loop turn whenever a slice is used up. Resolves at its end. */
export function inSlices(steps: Iterator<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const run = () => {
      const end = performance.now() + sliceMs
      try {
        while (steps.next().done !== true) {
          if (performance.now() >= end) {
            setImmediate(run)
            return
          }
        }
        resolve()
      } catch (error) {
        reject(error)
      }
    }
    run()
  })
}
