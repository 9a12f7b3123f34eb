import type { Instance } from './kernel.js'

const defaultPort = '8080'

/**
 * The address of a page of the dashboard, for mails and notifications: `path` below `PUBLIC_BASE_URL`.
 * Without that setting it is known only while the platform listens on this machine alone; otherwise
 * undefined. It is never taken from a request: whoever sends one chooses its Host header. Throws when
 * `PUBLIC_BASE_URL` is no http or https address, so ask once at start.
 */
export function publicLink(
  { environment, loopbackOnly }: Pick<Instance, 'environment' | 'loopbackOnly'>,
  path: string
): string | undefined {
  const given = environment('PUBLIC_BASE_URL')
  const base = given ?? (loopbackOnly ? `http://localhost:${environment('PORT') ?? defaultPort}` : undefined)
  if (base === undefined) return undefined
  const url = URL.canParse(base) ? new URL(base) : undefined
  if (
    url === undefined ||
    !['http:', 'https:'].includes(url.protocol) ||
    url.search !== '' ||
    url.hash !== ''
  ) {
    throw new Error(`PUBLIC_BASE_URL is "${base}"; it takes an address such as https://busbar.example.com`)
  }
  return url.href.replace(/(?<!\/)\/+$/, '') + path
}
