import { type ProblemKind, problemTable, type TSchema } from 'busbar/sdk'
import type { DescribedRoute } from './openapi.js'
import { namePrefix, type SchemaComponents } from './schema-components.js'

type Json = Record<string, unknown>

/** What every operation refuses that does not take the header. */
export const { unwantedKey } = problemTable({
  unwantedKey: [
    400,
    'E_IDEMPOTENCY_KEY',
    '{method} {url} takes no Idempotency-Key, and would run again',
    'leave the header out'
  ]
})
export const idempotencyProblems = problemTable({
  malformed: [
    400,
    'E_IDEMPOTENCY_KEY',
    'Idempotency-Key must be one header of 1 to 255 printable ASCII characters'
  ],
  otherBody: [
    409,
    'E_IDEMPOTENCY_MISMATCH',
    'this Idempotency-Key was used with another body',
    'use a new key'
  ],
  underWay: [
    409,
    'E_IDEMPOTENCY_IN_PROGRESS',
    'a request with this Idempotency-Key is still being answered',
    'send it again after the seconds of Retry-After, and it gets that answer'
  ],
  lost: [
    409,
    'E_IDEMPOTENCY_OUTCOME_UNKNOWN',
    'the request with this Idempotency-Key has got no answer, as the platform stopped while it was carried out or it never ended',
    'look whether what it makes or starts is there; if not, send it with a new key'
  ]
})

export const streamProblems = problemTable({
  tooMany: [
    429,
    'E_EVENT_STREAMS',
    'you have {max} event streams open, which is as many as a user may have at once',
    'close one first'
  ]
})
const eventStream = 'text/event-stream'

/** What a status means, whatever the operation is. */
const words: Readonly<Record<number, string>> = {
  400: 'The request is malformed; the error names what is wrong with it.',
  401: 'The credential is missing, invalid or expired.',
  403: 'The credential may not do this.',
  404: 'It does not exist, or the caller cannot see it.',
  408: 'The body comes too slowly.',
  413: 'The body is too large.',
  415: 'The content type of the body is not the one that the operation takes, or is none.',
  429: 'The rate limit is exceeded.',
  500: 'Something failed on the side of the platform; its log has the details.',
  503: 'Something that the operation needs does not answer at the moment, or it took too long; the same request may be sent again later.'
}

const successes: Readonly<Record<number, string>> = {
  101: 'The connection is a WebSocket from here on.',
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted: the work goes on after this answer.',
  204: 'Done; the answer has no body.',
  302: 'The address to go on to is in `Location`.',
  304: 'Nothing has changed: the answer is the one with the tag that `If-None-Match` has. It has no body.'
}

/** What the kernel answers before a plugin is asked, or in its place. */
function kernelStatuses({ access, method, idempotent }: DescribedRoute): number[] {
  return [
    400,
    ...(access.kind === 'public' ? [] : [401, 403, 404]),
    // Of a body that the operation does not take too.
    ...(method === 'GET' ? [] : [408, 413, 415]),
    ...(idempotent ? [409] : []),
    429,
    500,
    503
  ]
}

function kindsOf({ problems, idempotent, produces, access }: DescribedRoute): readonly ProblemKind[] {
  return [
    ...problems,
    ...(idempotent ? Object.values(idempotencyProblems) : []),
    ...(produces === eventStream && access.kind !== 'public' ? Object.values(streamProblems) : [])
  ]
}

/** All that an operation answers, by status. */
export function describeResponses(route: DescribedRoute, components: SchemaComponents): Record<string, Json> {
  const kinds = kindsOf(route)
  const declared = answersOf(route)
  return Object.fromEntries(
    [...declaredStatuses(route)].map(status => [
      status,
      Object.hasOwn(declared, status)
        ? declaredAnswer(route, status, declared[status] ?? null, components)
        : refusal(status, kinds)
    ])
  )
}

const answersOf = ({
  schema,
  successStatus,
  conditional
}: DescribedRoute): Readonly<Record<number, TSchema | null>> => {
  const declared = schema.response ?? { [successStatus]: null }
  return conditional ? { ...declared, 304: null } : declared
}

/** Of an answer that a client may keep and ask for again. */
const tagHeader = {
  ETag: {
    description: 'The tag of this answer, for `If-None-Match`: a weak one, the same in every content coding.',
    schema: { type: 'string' }
  }
}

/** Every status that an operation can answer by its declaration, in ascending order. */
export function declaredStatuses(route: DescribedRoute): ReadonlySet<number> {
  const statuses = [
    ...kernelStatuses(route),
    ...kindsOf(route).map(({ status }) => status),
    ...Object.keys(answersOf(route)).map(Number)
  ]
  return new Set(statuses.sort((a, b) => a - b))
}

function declaredAnswer(
  route: DescribedRoute,
  status: number,
  answer: unknown,
  components: SchemaComponents
): Json {
  const { produces, responseHeaders, conditional } = route
  const isSuccess = status < 400
  const told = Object.entries(isSuccess && status !== 304 ? responseHeaders : {}).map(
    ([name, { description, ...schema }]) => [name, { description, schema }]
  )
  const headers = {
    ...Object.fromEntries(told),
    ...(conditional && (status === 200 || status === 304) ? tagHeader : {})
  }
  return {
    description: isSuccess
      ? (successes[status] ?? 'Done.')
      : textOf(
          status,
          kindsOf(route).filter(kind => kind.status === status)
        ),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content:
      answer !== null
        ? { 'application/json': { schema: components.describe(answer, 'answer', namePrefix(route)) } }
        : produces === undefined || status === 304
          ? undefined
          : { [produces]: { schema: { type: 'string' } } }
  }
}

const refusalContent = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
const plainContent = { 'text/plain': { schema: { type: 'string' } } }
/** Of every operation that takes a key. */
const inProgressHeaders: Json = {
  'Retry-After': {
    description: 'Seconds, where the request with the same `Idempotency-Key` is still being answered.',
    schema: { type: 'integer' }
  }
}
const refusalHeaders: Readonly<Record<number, Json>> = {
  401: {
    'WWW-Authenticate': {
      description: 'How to sign in: `Bearer realm="busbar"`, whatever else there is.',
      schema: { type: 'string' }
    }
  },
  429: {
    'Retry-After': {
      description: 'Seconds until a request is let in again, where that is known.',
      schema: { type: 'integer' }
    }
  }
}

function refusal(status: number, kinds: readonly ProblemKind[]): Json {
  const mine = kinds.filter(kind => kind.status === status)
  const codes = [...new Set(mine.map(({ code }) => code))]
  const headers = mine.includes(idempotencyProblems.underWay) ? inProgressHeaders : refusalHeaders[status]
  return {
    description: textOf(status, mine),
    ...(codes.length === 0 ? {} : { 'x-codes': codes }),
    ...(headers === undefined ? {} : { headers }),
    // The limit of requests answers in plain text.
    content: status === 429 ? { ...plainContent, ...(mine.length > 0 && refusalContent) } : refusalContent
  }
}

/** What is said of a status where nothing is known of the operation. */
export const refusalWords = (status: number): string =>
  words[status] ?? (status === 409 ? 'What is there already does not allow it.' : 'Refused.')

/** What the platform means by the status, and what the operation does. */
function textOf(status: number, kinds: readonly ProblemKind[]): string {
  const general = words[status]
  const listed = kinds.map(({ code, message }) => `- \`${code}\`: ${message}`)
  return [...(general === undefined ? [] : [general]), ...listed].join('\n') || 'Refused.'
}
