import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** The header by which a proxy of this installation shows that it has set `X-Forwarded-…` anew. */
export const ownProxyHeader = 'x-busbar-proxy'

/** Whether a request was handed on by such a proxy: it has the secret that only the installation knows. */
export function ownProxyTest(secret: string): (request: IncomingMessage) => boolean {
  const expected = Buffer.from(secret)
  return ({ headers }) => {
    const given = headers[ownProxyHeader]
    if (typeof given !== 'string') return false
    const bytes = Buffer.from(given)
    return bytes.length === expected.length && timingSafeEqual(bytes, expected)
  }
}
