import { type ClientRequest, request as openRequest, type RequestOptions } from 'node:http'
import type { Upstream } from './upstream.js'

/** Why a request to a container was given up; `code` says it to `refusalOf`. */
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
    if (hasBody) outgoing.flushHeaders()
    else outgoing.end()
    return outgoing
  } catch {
    outgoing?.on('error', () => {})
    outgoing?.destroy()
    return undefined
  }
}
