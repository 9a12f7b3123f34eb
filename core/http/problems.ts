import { validateHeaderName, validateHeaderValue } from 'node:http'
import { cutText, isProblem, Problem, problemTable } from 'busbar/sdk'
import type { FastifyError } from 'fastify'

const bodyProblems = problemTable({
  tooLarge: [
    413,
    'E_BODY_TOO_LARGE',
    'the body is larger than the {limit} bytes that this operation accepts'
  ],
  type: [415, 'E_BODY_TYPE', 'the body must be JSON', 'send content-type: application/json'],
  empty: [400, 'E_BODY_INVALID', 'the body must not be empty', { field: '' }],
  noJson: [400, 'E_BODY_INVALID', 'the body is not valid JSON', { field: '' }],
  length: [400, 'E_BODY_INVALID', 'the body is not as long as its content-length says', { field: '' }]
})
export const { tooLarge } = bodyProblems

/** What fastify finds wrong, in our words; `bodyLimit` is that of the route. */
const fastifyProblems: Readonly<Record<string, (bodyLimit: number) => Problem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: limit => tooLarge({ limit }),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => bodyProblems.type(),
  FST_ERR_CTP_EMPTY_JSON_BODY: () => bodyProblems.empty(),
  FST_ERR_CTP_INVALID_JSON_BODY: () => bodyProblems.noJson(),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () => bodyProblems.length()
}

/** The answer to an error: a problem as it is, what fastify found wrong in our words, anything else a 500 without details. */
export function toProblem(error: unknown, bodyLimit = 0): Problem {
  try {
    return problemOf(error, bodyLimit)
  } catch {
    // What a plugin throws may itself throw when it is read.
    return internal()
  }
}

const internal = (): Problem =>
  new Problem(500, 'E_INTERNAL', 'something went wrong on our side; the log has the details')

/** Characters of a message, and of the details: no error needs more, and to write them stands in everybody's way. */
const longestMessage = 10_000
const longestDetails = 1_000_000

/** What can be sent of it: a plugin in JavaScript may have mixed up what a `Problem` takes. */
function sendable(problem: Problem): Problem | undefined {
  const { status, code, message, details, headers } = problem
  for (const [name, value] of Object.entries(headers ?? {})) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
  }
  const isWellFormed =
    Number.isInteger(status) &&
    status >= 400 &&
    status <= 599 &&
    typeof code === 'string' &&
    code.length <= longestMessage &&
    typeof message === 'string' &&
    (JSON.stringify(details) ?? '').length <= longestDetails
  if (!isWellFormed) return undefined
  return message.length <= longestMessage
    ? problem
    : new Problem(status, code, cutText(message, longestMessage), details, headers)
}

function problemOf(error: unknown, bodyLimit: number): Problem {
  if (isProblem(error)) return sendable(error) ?? internal()
  const { code, statusCode, message } = (error ?? {}) as Partial<FastifyError>
  const known = code === undefined ? undefined : fastifyProblems[code]
  if (known !== undefined) return known(bodyLimit)
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new Problem(statusCode, 'E_REQUEST_INVALID', message ?? 'the request is not valid')
  return internal()
}
