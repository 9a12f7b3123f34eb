import { isPromise, isProxy } from 'node:util/types'
import { type Bounds, bounded } from './bounded.js'
import { isProblem, type Problem } from './errors.js'
import type { Log } from './kernel.js'

/** What kind of value something is, for an error: `undefined`, `an object`, `a number`. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (isPromise(value)) return 'a promise'
  // Of a proxy that was revoked it cannot be asked whether it is a list.
  if (!isProxy(value) && Array.isArray(value)) return 'a list'
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

/** What a contribution may answer, and how it is spoken of. */
export interface ExpectedAnswer<A> {
  /** For the log: `the build types`. */
  readonly what: string
  /** For the log: `a list of texts`. */
  readonly takes: string
  /** What counts of an answer, undefined where nothing does. The answer is read here alone: it is another plugin's object. */
  readonly take: (answer: unknown) => A | undefined
  readonly log: Log
}

/** One of `Contributions.entries()`. */
interface Contributed<V> {
  readonly plugin: string
  readonly value: V
}

/**
 * Asks a contribution that answers at once. One that throws, or answers what is not taken (a promise, where it is
 * asynchronous by mistake), is left out: undefined, and the log names its plugin, once.
 *
 *     use.prices.entries().flatMap(entry => askNow(entry, prices => prices.list(), expected) ?? [])
 */
export function askNow<V, A>(
  entry: Contributed<V>,
  ask: (value: V) => unknown,
  expected: ExpectedAnswer<A>
): A | undefined {
  try {
    const answer = ask(entry.value)
    const answered = typeof answer === 'object' && isPromise(answer) ? undefined : expected.take(answer)
    if (answered !== undefined) return answered
    // What it rejects with would be an error that nobody has caught.
    if (isPromise(answer)) answer.then(undefined, () => {})
    throw notTaken(answer, expected)
  } catch (thrown) {
    noteLeftOut(entry, messageOf(thrown), expected)
    return undefined
  }
}

/**
 * The same of one that answers with a promise, with a limit. Who asks for one answer of several tells by `onProblem` what a
 * `Problem` says, as its text is meant for the caller: the answers of others count all the same.
 */
export async function askOrLeaveOut<V, A>(
  entry: Contributed<V>,
  ask: (value: V) => unknown,
  {
    ms,
    onProblem,
    ...expected
  }: ExpectedAnswer<A> & { readonly ms: number; readonly onProblem?: (problem: Problem) => void }
): Promise<A | undefined> {
  try {
    const answer = await bounded(async () => await ask(entry.value), { ms, what: 'it' })
    const answered = expected.take(answer)
    if (answered !== undefined) return answered
    throw notTaken(answer, expected)
  } catch (thrown) {
    if (onProblem !== undefined && isProblem(thrown)) onProblem(thrown)
    else noteLeftOut(entry, messageOf(thrown), expected)
    return undefined
  }
}

const notTaken = <A>(answer: unknown, { takes }: ExpectedAnswer<A>): TypeError =>
  new TypeError(`it answered ${kindOf(answer)}; it takes ${takes}`)

/** What the log has said already to be left out, by contribution; a new run contributes anew. */
const leftOut = new WeakMap<object, Set<string>>()

function noteLeftOut<A>(entry: Contributed<unknown>, reason: string, { what, log }: ExpectedAnswer<A>): void {
  const noted = leftOut.get(entry) ?? new Set()
  if (noted.has(what)) return
  leftOut.set(entry, noted.add(what))
  log.error(
    { contributor: entry.plugin, reason },
    `${what} of the plugin "${entry.plugin}" could not be taken`
  )
}

/** Reading what was thrown may throw in turn. */
export function messageOf(thrown: unknown): string {
  try {
    if (typeof thrown === 'string') return thrown
    if (thrown instanceof Error && typeof thrown.message === 'string') return thrown.message
  } catch {
    /* its getters throw */
  }
  return `it threw ${kindOf(thrown)}`
}
