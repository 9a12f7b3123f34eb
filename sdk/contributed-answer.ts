import { type Bounds, bounded } from './bounded.js'
import { isProblem } from './errors.js'

/** What kind of value something is, for an error: `undefined`, `an object`, `a number`. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'a list'
  const type = typeof value
  return type === 'object' ? 'an object' : type === 'string' ? 'a text' : `a ${type}`
}

/**
 * `bounded`, for a contribution: what it throws names it (`what`), a `Problem` apart, whose text is meant for the caller.
 * JavaScript lets anything be thrown, and the plugin is what a reader needs first.
 */
export async function askContribution<T>(work: () => T | Promise<T>, bounds: Bounds): Promise<T> {
  return await bounded(async () => {
    try {
      return await work()
    } catch (thrown) {
      if (bounds.signal?.aborted || isProblem(thrown)) throw thrown
      throw new Error(`${bounds.what}: ${messageOf(thrown)}`, { cause: thrown })
    }
  }, bounds)
}

/**
 * Asks a contribution whether it refuses: the sentence that says why, or null. JavaScript that answers nothing refuses
 * nothing; anything but a text rejects, and names the contribution and what it takes.
 */
export async function askRefusal(work: () => unknown, bounds: Bounds): Promise<string | null> {
  const answer = await askContribution(work, bounds)
  if (answer === null || answer === undefined) return null
  if (typeof answer === 'string' && answer.trim() !== '') return answer
  const kind = typeof answer === 'string' ? 'an empty text' : kindOf(answer)
  throw new TypeError(`${bounds.what} answered ${kind}; it takes a sentence that says why, or null`)
}

/** Reading what was thrown may throw in turn. */
function messageOf(thrown: unknown): string {
  try {
    if (typeof thrown === 'string') return thrown
    if (thrown instanceof Error && typeof thrown.message === 'string') return thrown.message
  } catch {
    /* its getters throw */
  }
  return `it threw ${kindOf(thrown)}`
}
