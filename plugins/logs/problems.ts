import { Problem, problemTable } from 'busbar/sdk'

export const problems = problemTable({
  applicationMissing: [404, 'E_APPLICATION_NOT_FOUND', 'application {applicationId} does not exist'],
  busy: [
    503,
    'E_LOGS_BUSY',
    'others read logs, and it was not the turn of this request in time',
    'send it again after the seconds of Retry-After, or narrow it by since and until'
  ]
})

/** With the time after which it is worth another try. */
export function busy(): Problem {
  const { status, code, message, details } = problems.busy()
  return new Problem(status, code, message, details, { 'retry-after': '5' })
}
