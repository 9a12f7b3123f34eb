import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { OwnAnswer } from './route.js'

/** What the forwarder itself answers: plain text that says what is wrong and where to look. */
const refusals = {
  noTarget: [503, 'This application is not running. Start or deploy it, then try again.'],
  unreachable: [
    502,
    "The application did not accept the connection: its process is not listening on the configured port, or has just ended. See the application's logs."
  ],
  broken: [502, "The application closed the connection before it answered. See the application's logs."],
  notHttp: [
    502,
    'The application did not answer with HTTP. Check that the configured port is the one it serves HTTP on.'
  ],
  endlessInterim: [502, 'The application sent interim answers (1xx) one after another and no final one.'],
  connectTimeout: [504, "The application did not accept a connection in time. See the application's logs."],
  answerTimeout: [504, 'The application accepted the request but did not begin to answer in time.'],
  bodyTimeout: [408, 'The body of the request stopped arriving. Send it again.'],
  badTarget: [400, 'The request target is neither a path nor an http URL.'],
  badHead: [
    400,
    'The headers of the request are not valid: one Host header with a name or an address is needed, and names and values of the characters that HTTP allows.'
  ],
  otherHost: [
    421,
    'The application on this port has another host than the one that was asked for. Use the address that the platform shows for it.'
  ],
  tooManyHeaders: [431, 'The request has more than 200 headers.'],
  tooFarAhead: [
    429,
    'Too many requests of this address wait behind others of their connections. Send fewer ahead of their answers.'
  ],
  badUpgrade: [400, 'A request that changes the protocol cannot have a body.'],
  badCoding: [501, 'This transfer coding is not supported.']
} as const satisfies Record<string, readonly [number, string]>
export type Refusal = keyof typeof refusals

/** What is wrong with the request itself: no failure of the application, nor of a switch. */
export const isClientsFault = (refusal: Refusal): boolean => refusals[refusal][0] < 500

/** Answers how long the body is; 0 where there can be no answer any more. */
export function refuse(response: ServerResponse, refusal: Refusal): number {
  const [status, sentence] = refusals[refusal]
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return 0
  }
  const body = `${sentence}\n`
  const length = Buffer.byteLength(body)
  // What follows a request that was not understood is not taken for another.
  if (status === 400 || status === 421 || status === 431 || status === 501) response.shouldKeepAlive = false
  // With its words: those of a container that node refused to send would be tried again.
  response.writeHead(status, STATUS_CODES[status], {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': length,
    'Cache-Control': 'no-store',
    ...(status === 503 ? { 'Retry-After': '1' } : {})
  })
  response.end(body)
  return length
}

/** What is not handed on to any application: an answer of the forwarder's own, in plain text. Answers how long that is. */
export function answerItself(response: ServerResponse, answer: Refusal | OwnAnswer): number {
  if (typeof answer === 'string') return refuse(response, answer)
  const { status, sentence, headers } = answer
  const body = `${sentence}\n`
  const length = Buffer.byteLength(body)
  response.writeHead(status, STATUS_CODES[status], {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': length,
    'Cache-Control': 'no-store',
    ...headers
  })
  response.end(body)
  return length
}

/** Why no answer came, from the error of the connection. */
export function refusalOf(error: NodeJS.ErrnoException, wasConnected: boolean): Refusal {
  if (error.code === 'E_CONNECT_TIMEOUT' || (!wasConnected && error.code === 'ETIMEDOUT'))
    return 'connectTimeout'
  if (error.code === 'E_ANSWER_TIMEOUT') return 'answerTimeout'
  if (error.code === 'E_BODY_TIMEOUT') return 'bodyTimeout'
  if (!wasConnected) return 'unreachable'
  return error.code?.startsWith('HPE_') === true ? 'notHttp' : 'broken'
}
