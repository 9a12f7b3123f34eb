import { Problem, problemTable } from 'busbar/sdk'

const problems = problemTable({
  handshake: [
    400,
    'E_WEBSOCKET_HANDSHAKE',
    'the handshake of the WebSocket is not valid: {fault}',
    'connect with a client for WebSockets (RFC 6455)'
  ]
})

/** RFC 6455, 4.4: who speaks another version is told which are spoken here. */
const versions = { 'sec-websocket-version': '13, 8' }

/** The answer to a handshake that ws refuses, which says why in a message of its own. */
export function handshakeRefusal({ message: reason }: Error): Problem {
  const fault = reason.charAt(0).toLowerCase() + reason.slice(1)
  const { status, code, message, details } = problems.handshake({ fault })
  return new Problem(status, code, message, details, versions)
}
