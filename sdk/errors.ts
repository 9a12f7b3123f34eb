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

/** A kind of problem as it is declared: the message with its `{placeholders}`. */
export interface ProblemKind {
  readonly status: number
  readonly code: string
  readonly message: string
}

type Named<M extends string> = M extends `${string}{${infer P}}${infer R}` ? P | Named<R> : never
type Row = readonly [status: number, code: `E_${string}`, message: string]
type Maker<R extends Row> = ProblemKind &
  (Named<R[2]> extends never
    ? (details?: Record<string, unknown>) => Problem
    : (values: Record<Named<R[2]>, string | number>, details?: Record<string, unknown>) => Problem)

/**
 * The errors of one area in one table: status, stable code, sentence with `{placeholders}`.
 *
 *     const problems = problemTable({ noBranch: [409, 'E_SOURCE_BRANCH', 'branch {branch} does not exist in {repo}'] })
 *     throw problems.noBranch({ branch, repo })
 *
 * A route names those that it throws: `problems: [problems.noBranch]`.
 */
export function problemTable<const T extends Record<string, Row>>(
  table: T
): { readonly [K in keyof T]: Maker<T[K]> } {
  const makers = Object.entries(table).map(([name, [status, code, template]]) => {
    const make = template.includes('{')
      ? (values: Record<string, string | number>, details = {}) =>
          new Problem(
            status,
            code,
            template.replace(/\{(\w+)\}/g, (_, key: string) => String(values[key])),
            details
          )
      : (details = {}) => new Problem(status, code, template, details)
    return [name, Object.assign(make, { status, code, message: template })]
  })
  return Object.freeze(Object.fromEntries(makers))
}
