import type { IncomingMessage } from 'node:http'
import { type Problem, problemTable } from 'busbar/sdk'
import { hasTooManyHeaders, headFault, maxHeaders } from 'busbar/sdk/http1'

const problems = problemTable({
  many: [431, 'E_REQUEST_INVALID', 'the request has more than {max} headers'],
  condition: [
    400,
    'E_PRECONDITION',
    '{header} is not looked at by {method}, which would change things whatever their state is',
    'leave the header out'
  ],
  fault: [400, 'E_REQUEST_INVALID', 'the request is not valid HTTP: {fault}']
})

const conditions = ['if-match', 'if-none-match', 'if-unmodified-since']

/** Why the head of a request is refused before anything else is read of it; null when nothing is wrong with it. */
export function refuseHead(request: IncomingMessage): Problem | null {
  if (hasTooManyHeaders(request)) return problems.many({ max: maxHeaders })
  const fault = headFault(request)
  return fault === null ? refuseCondition(request) : problems.fault({ fault })
}

/** RFC 9110, 13.1: a change must not be made against its condition, and no operation has what could be compared with one. */
function refuseCondition({ method = 'GET', headers }: IncomingMessage): Problem | null {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return null
  const header = conditions.find(name => headers[name] !== undefined)
  return header === undefined ? null : problems.condition({ header, method })
}

/** The same for an upgrade, which can have no body either: what comes after it is another protocol. */
export function refuseUpgrade(request: IncomingMessage): Problem | null {
  const { headers } = request
  const refusal = refuseHead(request)
  if (refusal !== null) return refusal
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
    ? problems.fault({ fault: 'an upgrade cannot have a body' })
    : null
}
