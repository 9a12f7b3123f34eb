/** How much of a turn of the event loop goes to what has waited, of all connections together. */
const longestTurnMs = 10

const due: Array<() => void> = []
let isPlanned = false

/** Calls `begin` in a later turn of the event loop, after what was handed in before it. */
export function soon(begin: () => void): void {
  due.push(begin)
  plan()
}

function plan(): void {
  if (isPlanned || due.length === 0) return
  isPlanned = true
  setImmediate(runDue)
}

function runDue(): void {
  isPlanned = false
  const endsAt = performance.now() + longestTurnMs
  // What comes meanwhile waits for the next turn.
  let left = due.length
  try {
    do {
      left -= 1
      due.shift()?.()
    } while (left > 0 && performance.now() < endsAt)
  } finally {
    // Also when one of them has thrown.
    plan()
  }
}
