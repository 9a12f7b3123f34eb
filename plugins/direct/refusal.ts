import { STATUS_CODES, type ServerResponse } from 'node:http'

/** What the forwarder itself answers: plain text that says what is wrong and where to look. */
export const refusals = {
  noTarget: [503, 'This application is not running. Start or deploy it, then try again.'],
  unreachable: [502, 'The application did not accept the connection: its process is not listening on the configured port, or has just ended. See the application\'s logs.'],
  broken: [502, 'The application closed the connection before it answered. See the application\'s logs.'],
  notHttp: [502, 'The application did not answer with HTTP. Check that the configured port is the one it serves HTTP on.'],
  connectTimeout: [504, 'The application did not accept a connection in time. See the application\'s logs.'],
  answerTimeout: [504, 'The application accepted the request but did not begin to answer in time.'],
  badTarget: [400, 'The request target is neither a path nor an http URL.'],
  badCoding: [501, 'This transfer coding is not supported.']
} as const satisfies Record<string, readonly [number, string]>
export type Refusal = keyof typeof refusals

export function refuse (response: ServerResponse, refusal: Refusal): void {
  const [status, sentence] = refusals[refusal]
  if (response.headersSent || response.destroyed) return response.destroy() && undefined
  const body = `${sentence}\n`
  // With its words: those of a container that node refused to send would be tried again.
  response.writeHead(status, STATUS_CODES[status], {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...(status === 503 ? { 'Retry-After': '1' } : {})
  })
  response.end(body)
}

/** Why no answer came, from the error of the connection. */
export function refusalOf (error: NodeJS.ErrnoException, wasConnected: boolean): Refusal {
  if (error.code === 'E_CONNECT_TIMEOUT' || (!wasConnected && error.code === 'ETIMEDOUT')) return 'connectTimeout'
  if (error.code === 'E_ANSWER_TIMEOUT') return 'answerTimeout'
  if (!wasConnected) return 'unreachable'
  return error.code?.startsWith('HPE_') === true ? 'notHttp' : 'broken'
}
