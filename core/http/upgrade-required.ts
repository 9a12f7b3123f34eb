import { Problem, type ProblemKind, problemTable } from 'busbar/sdk'

const problems = problemTable({
  upgradeRequired: [
    426,
    'E_UPGRADE_REQUIRED',
    'this address is a WebSocket',
    'connect to it by ws:// or wss://; /api/docs says how'
  ]
})

/** What a GET of a WebSocket's address is answered that asks for no upgrade. */
export const upgradeRequired: ProblemKind = problems.upgradeRequired

/** RFC 9110, 15.5.22: the answer names the protocol. */
export function requireUpgrade(): Problem {
  const { status, code, message, details } = problems.upgradeRequired()
  return new Problem(status, code, message, details, { upgrade: 'websocket', connection: 'Upgrade' })
}
