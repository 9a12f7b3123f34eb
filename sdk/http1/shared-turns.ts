/** How much of a turn of the event loop goes to beginning requests, of all connections together. */
const longestTurnMs = 10

const due: Array<() => void> = []
let isPlanned = false
/** When this turn has been used up; undefined when nothing has begun in it. */
let endsAt: number | undefined

/** Whether what has begun in this turn of the event loop has used it up. Ask it before each request that may begin at once. */
export function isTurnUsedUp(): boolean {
  if (endsAt !== undefined) return performance.now() >= endsAt
  endsAt = performance.now() + longestTurnMs
  setImmediate(endTurn)
  return false
}

function endTurn(): void {
  endsAt = undefined
}

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
  const ends = performance.now() + longestTurnMs
  // What comes meanwhile waits for the next turn.
  let left = due.length
  try {
    do {
      left -= 1
      due.shift()?.()
    } while (left > 0 && performance.now() < ends)
  } finally {
    // Also when one of them has thrown.
    plan()
  }
}
