/** What a switch did to the traffic, counted while it is watched. */
interface TrafficWatch {
  served: number
  failed: number
  longestGapMs: number
}

/**
 * Counts the requests of one application.
 *
 * A gap is the time between two answers while at least one request waits; time without a waiting
 * request does not count.
 */
export function createSwitchMeter(now: () => number = () => performance.now()) {
  const watches = new Set<TrafficWatch>()
  let waiting = 0
  let gapSince = 0

  const closeGap = (): void => {
    const at = now()
    for (const watch of watches) watch.longestGapMs = Math.max(watch.longestGapMs, at - gapSince)
    gapSince = at
  }

  return {
    began(): void {
      if (waiting === 0) gapSince = now()
      waiting += 1
    },
    answered(): void {
      waiting -= 1
      closeGap()
      for (const watch of watches) watch.served += 1
    },
    failed(): void {
      waiting -= 1
      for (const watch of watches) watch.failed += 1
    },
    /** The client went away: not counted as a failure. */
    abandoned(): void {
      waiting -= 1
    },
    /** An answer that had begun was cut off. */
    cut(): void {
      for (const watch of watches) watch.failed += 1
    },

    /** Counts from now on until `end`. */
    watch(): { end(): TrafficWatch } {
      const watch: TrafficWatch = { served: 0, failed: 0, longestGapMs: 0 }
      gapSince = now()
      watches.add(watch)
      return {
        end() {
          if (waiting > 0) watch.longestGapMs = Math.max(watch.longestGapMs, now() - gapSince)
          watches.delete(watch)
          return watch
        }
      }
    }
  }
}
export type SwitchMeter = ReturnType<typeof createSwitchMeter>
