import { recurrenceFault } from './recurrence.js'

/** What is wrong with single values of a declaration, whatever their types claim: plugins may be JavaScript. */

const mostAttempts = 1_000
const longestIdentifier = 128

const isPositive = (value: unknown): boolean => typeof value === 'number' && value > 0
const isCount = (value: unknown, most = Number.MAX_SAFE_INTEGER): boolean =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) <= most

const faultsOf = (checks: ReadonlyArray<readonly [isWrong: boolean, fault: string]>): string[] =>
  checks.filter(([isWrong]) => isWrong).map(([, fault]) => fault)

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
function isProblemKind(value: unknown): boolean {
  if (typeof value !== 'function' && !isObject(value)) return false
  const { status, code, message } = value as { status?: unknown; code?: unknown; message?: unknown }
  return (
    isCount(status, 599) &&
    (status as number) >= 400 &&
    typeof code === 'string' &&
    typeof message === 'string'
  )
}

const given = (value: unknown, isRight: boolean): boolean => value !== undefined && !isRight

export const named = (name: unknown): string[] =>
  typeof name === 'string' && /^[a-z][A-Za-z0-9-]*$/.test(name) ? [] : [`"${String(name)}" is not a name`]

/** Of a job, and of a schedule, whose runs are jobs. */
export function workFaults(
  plugin: string,
  spec: { name: unknown; lane?: unknown; attempts?: unknown; timeoutMs?: unknown; run: unknown }
): string[] {
  return [
    ...named(spec.name),
    ...faultsOf([
      [`${plugin}:schedule.${String(spec.name)}`.length > longestIdentifier, 'its name is too long'],
      [given(spec.lane, spec.lane === 'short' || spec.lane === 'long'), 'lane is short or long'],
      [
        given(spec.attempts, isCount(spec.attempts, mostAttempts)),
        `attempts is a whole number from 1 to ${mostAttempts}`
      ],
      [given(spec.timeoutMs, isPositive(spec.timeoutMs)), 'timeoutMs is a number of milliseconds'],
      [typeof spec.run !== 'function', 'it has no function run']
    ])
  ]
}

export const scheduleTimeFaults = (spec: {
  cron: unknown
  timeZone?: unknown
  missed?: unknown
}): string[] => {
  const { cron, timeZone, missed } = spec
  if (typeof cron !== 'string' || given(timeZone, typeof timeZone === 'string'))
    return ['cron and timeZone are text']
  const fault = recurrenceFault({ cron, timeZone: timeZone as string | undefined })
  return [
    ...(fault === null ? [] : [fault]),
    ...(given(missed, missed === 'skip' || missed === 'run-once') ? ['missed is skip or run-once'] : [])
  ]
}

/** The parts of a route that are no schema. */
export function routeValueFaults(spec: {
  operationId?: unknown
  description?: unknown
  problems?: unknown
  responseHeaders?: unknown
  group?: unknown
  produces?: unknown
  timeoutMs?: unknown
  bodyLimit?: unknown
  body?: unknown
  limit?: unknown
  audit?: unknown
  precondition?: unknown
  limitKey?: unknown
  version?: unknown
  method?: unknown
  documented?: unknown
  idempotent?: unknown
  schema?: { readonly response?: object }
  access?: { readonly kind?: unknown }
}): string[] {
  const {
    operationId,
    description,
    problems,
    responseHeaders,
    group,
    produces,
    timeoutMs,
    bodyLimit,
    body,
    limit,
    audit,
    precondition,
    limitKey,
    version,
    method,
    documented,
    idempotent,
    schema,
    access
  } = spec
  const { max, windowSeconds } = (limit ?? {}) as { max?: unknown; windowSeconds?: unknown }
  const bytes =
    typeof bodyLimit === 'object' && bodyLimit !== null ? (bodyLimit as { bytes?: unknown }).bytes : bodyLimit
  const isPage =
    access?.kind === 'public' &&
    method === 'GET' &&
    Object.values(schema?.response ?? {}).every(answer => answer === null)
  return faultsOf([
    [
      given(operationId, typeof operationId === 'string' && /^[A-Z][A-Za-z0-9]{0,99}$/.test(operationId)),
      'operationId is a capital letter, then letters and digits'
    ],
    [given(description, typeof description === 'string'), 'description is text'],
    [
      given(problems, Array.isArray(problems) && problems.every(isProblemKind)),
      'problems is a list of { status: 400 to 599, code, message }, such as the members of a problemTable'
    ],
    [
      given(responseHeaders, isObject(responseHeaders) && Object.values(responseHeaders).every(isObject)),
      'responseHeaders has a schema for each header'
    ],
    [given(group, typeof group === 'string'), 'group is text'],
    [given(produces, typeof produces === 'string'), 'produces is text'],
    [given(timeoutMs, isPositive(timeoutMs)), 'timeoutMs is a number of milliseconds'],
    [given(bodyLimit, isCount(bytes)), 'bodyLimit is a whole number of bytes'],
    [
      given(body, ['json', 'none', 'raw', 'stream'].includes(body as string)),
      'body is json, none, raw or stream'
    ],
    [given(precondition, typeof precondition === 'function'), 'precondition is a function'],
    [
      given(limit, isCount(max) && isPositive(windowSeconds)),
      'limit is { max, windowSeconds }, both above 0'
    ],
    [
      given(limitKey, typeof limitKey === 'function' && limit !== undefined && access?.kind === 'public'),
      'limitKey is a function, of a public route with a limit'
    ],
    [
      given(version, typeof version === 'function' && method === 'GET' && audit === undefined),
      'version is a function, of a GET without audit'
    ],
    [given(idempotent, typeof idempotent === 'boolean'), 'idempotent is true or false'],
    // Whether a request is the same one shows by its body, which a stream has no more once it is read.
    [idempotent === true && body === 'stream', 'an idempotent operation takes no stream as its body'],
    [given(documented, typeof documented === 'boolean'), 'documented is true or false'],
    [documented === false && !isPage, 'only a public GET without JSON may be left out of the description'],
    [given(audit, isAudit(audit)), 'audit is { action, resource }, with an id of { param } or { result }']
  ])
}

function isAudit(audit: unknown): boolean {
  const { action, resource, id, keeps } = (audit ?? {}) as Readonly<Record<string, unknown>>
  const { param, result } = (id ?? {}) as { param?: unknown; result?: unknown }
  return (
    typeof action === 'string' &&
    typeof resource === 'string' &&
    (id === undefined || typeof param === 'string' || typeof result === 'string') &&
    (keeps === undefined || (Array.isArray(keeps) && keeps.every(field => typeof field === 'string')))
  )
}

const segment = /^(?:[\w.~@+,=!$&'-]+|:\w+)$/

/** Of the path of a route or of a socket: both are looked up by a router with a language of its own. */
export function segmentFaults(url: string): string[] {
  const names = [...url.matchAll(/:(\w+)/g)].map(match => match[1])
  const odd = url
    .slice(1)
    .split('/')
    .find(part => !segment.test(part))
  return [
    ...(odd === undefined ? [] : [`"${odd}" in its path is neither plain text nor one :parameter`]),
    ...(new Set(names).size < names.length ? ['its path has two parameters of one name'] : [])
  ]
}

/** What is wrong with the list of migrations; null when nothing is. */
export function migrationsFault(migrations: unknown): string | null {
  if (migrations === undefined) return null
  if (!Array.isArray(migrations)) return 'migrations is not a list'
  const names = new Set<string>()
  for (const [at, migration] of migrations.entries()) {
    const { name, phase, sql } = (migration ?? {}) as { name?: unknown; phase?: unknown; sql?: unknown }
    if (typeof name !== 'string' || name === '') return `migration ${at + 1} has no name`
    if (names.has(name)) return `migration ${name} is declared twice`
    names.add(name)
    if (phase !== 'expand' && phase !== 'contract')
      return `the phase of migration ${name} is expand or contract`
    if (typeof sql !== 'string' || sql.trim() === '') return `migration ${name} has no sql`
  }
  return null
}

/** What is wrong with what a plugin needs; null when nothing is. */
export function needsFault(needs: unknown): string | null {
  if (needs === undefined) return null
  if (typeof needs !== 'object' || needs === null) return 'needs is not an object'
  for (const [name, need] of Object.entries(needs)) {
    const { kind, id, service } = (need ?? {}) as { kind?: unknown; id?: unknown; service?: { id?: unknown } }
    const key = kind === 'optional' ? service?.id : id
    if (!['service', 'optional', 'extension-point'].includes(kind as string) || typeof key !== 'string')
      return `needs.${name} is no key of a service or of an extension point; look whether its name is misspelt`
  }
  return null
}
