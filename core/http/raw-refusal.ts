import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Problem } from 'busbar/sdk'
import { commonHeaders } from './answers.js'

export type RawRefusal = Pick<Problem, 'status' | 'code' | 'message'> &
  Partial<Pick<Problem, 'details' | 'headers'>>

/** Answers on the bare socket what never became a request that could be answered, and ends the connection. */
export function refuseRaw(
  socket: Duplex,
  { status, code, message, details, headers }: RawRefusal,
  requestId: string,
  transportSecurity: boolean
): void {
  if (!socket.writable) return
  const body = Buffer.from(JSON.stringify({ error: message, code, ...details }))
  const head = [
    ...commonHeaders(requestId, transportSecurity),
    ...Object.entries(headers ?? {}),
    ['connection', 'close'],
    ['content-type', 'application/json; charset=utf-8'],
    ['content-length', body.length]
  ].map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    Buffer.concat([
      Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head.join('')}\r\n`),
      body
    ])
  )
}
