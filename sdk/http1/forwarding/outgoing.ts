import {
  type ClientRequest,
  type IncomingMessage,
  request as openRequest,
  type RequestOptions
} from 'node:http'
import { hasTooManyHeaders, maxHeaders } from '../request.js'
import type { Upstream } from './upstream.js'

/** Why a request to a container was aborted; `code` says it to `refusalOf`. */
export class TimedOut extends Error {
  constructor(readonly code: 'E_CONNECT_TIMEOUT' | 'E_ANSWER_TIMEOUT' | 'E_BODY_TIMEOUT') {
    super(code)
  }
}

/**
 * Begins a request to a container and sends its head; with `hasBody` the body is still to be written.
 * Undefined when node refuses to write that head, which it says by throwing.
 */
export function openOutgoing(
  upstream: Upstream,
  options: RequestOptions,
  hasBody: boolean
): ClientRequest | undefined {
  let outgoing: ClientRequest | undefined
  try {
    outgoing = openRequest({
      host: upstream.target.host,
      port: upstream.target.port,
      setHost: false,
      ...options
    })
    outgoing.maxHeadersCount = maxHeaders + 1
    if (hasBody) outgoing.flushHeaders()
    else outgoing.end()
    return outgoing
  } catch {
    outgoing?.on('error', () => {})
    outgoing?.destroy()
    return undefined
  }
}

/** Interim answers (1xx) to one request; who works for long may send one every few seconds. */
export const maxInterim = 100

/**
 * False for what is not handed on: a change of protocol (101) that names none, which Node takes for an answer like any
 * other, and a head of more headers than Node has kept.
 */
export const isFit = (answer: IncomingMessage): boolean =>
  answer.statusCode !== 101 && !hasTooManyHeaders(answer)
