import type { IncomingMessage } from 'node:http'

const requests = new WeakSet<IncomingMessage>()

/** A HEAD is a GET whose body node leaves out. */
export function treatHeadAsGet(request: IncomingMessage): void {
  if (request.method !== 'HEAD') return
  request.method = 'GET'
  requests.add(request)
}

/** Nothing of the body of the answer would be sent: one that has no end need not begin. */
export const wantsHeadOnly = (request: IncomingMessage): boolean => requests.has(request)
