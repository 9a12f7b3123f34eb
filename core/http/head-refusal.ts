import type { IncomingMessage } from 'node:http'
import { type Problem, problemTable } from 'busbar/sdk'
import { hasTooManyHeaders, headFault, maxHeaders } from 'busbar/sdk/http1'

const problems = problemTable({
  many: [431, 'E_REQUEST_INVALID', 'the request has more than {max} headers'],
  fault: [400, 'E_REQUEST_INVALID', 'the request is not valid HTTP: {fault}']
})

/** Why the head of a request is refused before anything else is read of it; null when nothing is wrong with it. */
export function refuseHead(request: IncomingMessage): Problem | null {
  if (hasTooManyHeaders(request)) return problems.many({ max: maxHeaders })
  const fault = headFault(request)
  return fault === null ? null : problems.fault({ fault })
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
