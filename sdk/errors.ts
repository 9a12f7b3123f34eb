const mark: unique symbol = Symbol.for('busbar.problem')

/**
 * An error whose message is meant for the caller: `{ error: message, code, ...details }` with `status`.
 * Anything else that is thrown becomes a 500 that says nothing of the inside and is logged whole.
 */
export class Problem extends Error {
  readonly [mark] = true
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
    readonly headers: Readonly<Record<string, string>> = {}
  ) {
    super(message)
    this.name = 'Problem'
  }
}

/** True for a `Problem` of this or of another copy of the SDK (a bundled plugin carries its own). */
export function isProblem(error: unknown): error is Problem {
  try {
    return typeof error === 'object' && error !== null && mark in error
  } catch {
    // A proxy may throw when it is asked.
    return false
  }
}

/** Whose account something concerns. */
export interface ConcernedUser {
  readonly id: string
  readonly email: string
  readonly username: string
}
const concerned: unique symbol = Symbol.for('busbar.problem.concerned')

/** The same problem; the audit log, and no answer, names the user it concerns. For callers without a credential. */
export function concerning<P extends Problem>(problem: P, { id, email, username }: ConcernedUser): P {
  return Object.defineProperty(problem, concerned, {
    value: Object.freeze({ id, email, username }),
    configurable: true
  })
}
export const concernedUser = (error: unknown): ConcernedUser | undefined =>
  isProblem(error) ? (error as { [concerned]?: ConcernedUser })[concerned] : undefined

/** A kind of problem as it is declared: the message, remedy included, with its `{placeholders}`. */
export interface ProblemKind {
  readonly status: number
  readonly code: string
  readonly message: string
  /** What in the body or the query it is about, where that is always the same. */
  readonly field?: string
}

/** What is wrong and what helps, as one sentence. */
export const withRemedy = (reason: string, remedy: string): string =>
  `${reason}${reason.includes(': ') ? ';' : ':'} ${remedy}`

type Named<M extends string> = M extends `${string}{${infer P}}${infer R}` ? P | Named<R> : never
/** What the caller can do about it, and what in the body or the query it is about. */
type More = string | { readonly field: string; readonly remedy?: string }
type Row = readonly [status: number, code: `E_${string}`, reason: string, more?: More]
type RemedyOf<M> = M extends string ? M : M extends { readonly remedy: infer S extends string } ? S : never
type Placeholders<R extends Row> = Named<R[2]> | Named<RemedyOf<R[3]>>
type Maker<R extends Row> = ProblemKind &
  (Placeholders<R> extends never
    ? (details?: Record<string, unknown>) => Problem
    : (values: Record<Placeholders<R>, string | number>, details?: Record<string, unknown>) => Problem)

/**
 * The errors of one area in one table: status, stable code, what is wrong, and what the caller can do about it where that is not
 * plain, both with `{placeholders}`. The remedy is part of the message, and a field `remedy` of the answer. One about a field
 * of the body or the query names it; `{field}` in the reason does so, too.
 *
 *     const problems = problemTable({
 *       noBranch: [409, 'E_SOURCE_BRANCH', 'branch {branch} does not exist in {repo}', 'push it, or set another branch'],
 *       noName: [400, 'E_SHOP_NAME', 'name must not be empty', { field: 'name' }]
 *     })
 *     throw problems.noBranch({ branch, repo })
 *
 * A route names those that it throws: `problems: [problems.noBranch]`. Throws where a status is not one of a failure.
 */
export function problemTable<const T extends Record<string, Row>>(
  table: T
): { readonly [K in keyof T]: Maker<T[K]> } {
  const makers = Object.entries(table).map(([name, [status, code, reason, more]]) => {
    if (!(Number.isInteger(status) && status >= 400 && status < 600))
      throw new RangeError(`the status of the problem ${name} (${code}) must be 400 to 599, not ${status}`)
    const { field, remedy } = typeof more === 'string' ? { field: undefined, remedy: more } : (more ?? {})
    const message = remedy === undefined ? reason : withRemedy(reason, remedy)
    const problemOf = (values: Record<string, string | number>, given: Record<string, unknown>): Problem => {
      const about = field ?? values.field
      const details = about === undefined ? given : { field: about, ...given }
      const fill = (template: string): string =>
        template.replace(/\{(\w+)\}/g, (_, key: string) => String(values[key]))
      if (remedy === undefined) return new Problem(status, code, fill(reason), details)
      const [cause, help] = [fill(reason), fill(remedy)]
      return new Problem(status, code, withRemedy(cause, help), { ...details, remedy: help })
    }
    const make = message.includes('{')
      ? (values: Record<string, string | number>, details = {}) => problemOf(values, details)
      : (details = {}) => problemOf({}, details)
    return [name, Object.assign(make, { status, code, message, ...(field !== undefined && { field }) })]
  })
  return Object.freeze(Object.fromEntries(makers))
}
