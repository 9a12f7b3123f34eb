import { isIP } from 'node:net'

const loopback = /^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/

/**
 * Whether a request may have been meant for a listener at `bind`. On loopback nobody but this machine asks, and a browser on it may
 * be made to by a page whose name leads there (DNS rebinding): so it has to ask by an address, as `localhost`, or by a name
 * without a dot, of which no such page has one. On the network everybody may ask, by whatever name.
 */
export function isAskedFor(bind: string, host: string | undefined): boolean {
  if (!loopback.test(bind) || host === undefined) return true
  const name = host
    .toLowerCase()
    .replace(/:\d{0,5}$/, '')
    .replace(/\.$/, '')
  return isIP(name.replace(/^\[|\]$/g, '')) !== 0 || !name.includes('.') || name.endsWith('.localhost')
}
