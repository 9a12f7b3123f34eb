import type { IncomingMessage, ServerResponse } from 'node:http'

/** So much of a refused body is read and thrown away, so that its connection can be used again. */
const drainedBytes = 64 * 1024

/** True while some of the request's body has not arrived. */
export const isBodyComing = ({ complete, headers }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0)

/**
 * To be called before an answer that does not depend on the body: a short body is drained, for a long one, or one that
 * does not say how long it is, the connection ends with the answer.
 */
export function leaveUnread(request: IncomingMessage, response: ServerResponse): void {
  if (response.hasHeader('connection')) return
  const length = Number(request.headers['content-length'] ?? 0)
  if (request.headers['transfer-encoding'] === undefined && length <= drainedBytes) request.resume()
  else if (isBodyComing(request) && !response.headersSent) response.setHeader('connection', 'close')
}
