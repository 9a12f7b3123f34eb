import { isProblem, type Problem, problemTable } from 'busbar/sdk'

export const problems = problemTable({
  unreachable: [
    503,
    'E_DATABASE_UNREACHABLE',
    'PostgreSQL does not answer',
    "see that the server DATABASE_URL names is running, or, without DATABASE_URL, what the platform's log says of its own; then try again"
  ],
  busy: [503, 'E_DATABASE_BUSY', 'no database connection became free within {seconds} seconds: {what}'],
  locked: [503, 'E_DATABASE_LOCKED', '{what}'],
  noLockRoom: [
    503,
    'E_DATABASE_LOCK_ROOM',
    'PostgreSQL has no room for more locks',
    "try again; if this stays, the platform's log says who has most of them: end that, or raise the server's max_locks_per_transaction"
  ]
})

/** The code of a system error (`ENOENT`) or of PostgreSQL (`23505`), when it has one. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** PostgreSQL's code for a lock that was waited for too long. */
export const lockNotAvailable = '55P03'

/** The server's table of locks is full, whoever has filled it; as opposed to its memory. */
export const hasNoLockRoom = (error: unknown): boolean =>
  errorCode(error) === '53200' && /shared memory/.test((error as Error).message)

/** How long a caller waits for a connection. */
export const connectTimeoutMs = 10_000

const unreachableCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EACCES',
  // PostgreSQL: connection exceptions, shutdown, crash, starting up.
  '08000',
  '08001',
  '08003',
  '08004',
  '08006',
  '57P01',
  '57P02',
  '57P03'
])
const unreachableMessages =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout expired)/

/** Whether the connection failed, as opposed to the statement. */
export const isConnectionError = (error: unknown): boolean =>
  error instanceof Error &&
  (unreachableCodes.has(errorCode(error) ?? '') || unreachableMessages.test(error.message))

/** Insufficient resources: room for connections (53300), memory or locks (53200), disk (53100). */
const hasNoRoom = (error: unknown): boolean => errorCode(error)?.startsWith('53') === true

/** Of the pool: all its connections were in use. */
const isPoolBusy = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('timeout exceeded when trying to connect')

/** Whether the same statement may be answered later: the server is away or has no room, or no connection was free. */
export const mayPass = (error: unknown): boolean =>
  isConnectionError(error) || hasNoRoom(error) || isPoolBusy(error)

/** Whether a statement failed because its connection was closed already: the server has not seen it. */
export const wasNeverSent = (error: unknown): boolean =>
  error instanceof Error &&
  (errorCode(error) === 'EPIPE' || /^Client .* is not queryable$/.test(error.message))

/**
 * Turns a connection's error into a 503 that says what to do; every other error stays what it is. `waits`: what connections
 * that are in use wait for.
 */
export function storeError(error: unknown, waits?: () => string | undefined): unknown {
  if (isProblem(error)) return error
  if (isConnectionError(error)) return withCause(problems.unreachable(), error)
  if (hasNoLockRoom(error)) return withCause(problems.noLockRoom(), error)
  if (errorCode(error) !== '53300' && !isPoolBusy(error)) return error
  return withCause(problems.busy({ seconds: connectTimeoutMs / 1000, what: waits?.() ?? 'try again' }), error)
}

export function withCause(problem: Problem, cause: unknown): Problem {
  problem.cause = cause
  return problem
}

/** From where this is called the stack leads back to who asked; pg's ends where bytes came in. */
export function retrace(error: unknown): void {
  if (error instanceof Error) Error.captureStackTrace(error, retrace)
}
