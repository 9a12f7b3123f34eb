/**
 * Cookies ignore ports, so an application on another port of the platform's host would be sent the
 * platform's session and could overwrite it. Every forwarder keeps the two apart by these rules.
 */

/** What the platform's secrets begin with; an application's own cookie `token` passes. */
const secretPrefixes = ['busbar_ses_', 'busbar_ref_', 'busbar_dev_']
const ownNames = new Set(['token', 'refresh_token', 'csrf_token', 'known_device'])

/** A `Cookie` header without the platform's cookies; undefined when nothing is left. */
export function withoutPlatformCookies(header: string): string | undefined {
  if (!header.includes('busbar_') && !header.includes('csrf_token') && !header.includes('%')) return header
  const kept = header.split(';').filter(pair => !isPlatformCookie(pair))
  return kept.length === 0 ? undefined : kept.join(';').trim()
}

function isPlatformCookie(pair: string): boolean {
  const separator = pair.indexOf('=')
  if (separator < 0) return false
  if (pair.slice(0, separator).trim() === 'csrf_token') return true
  const value = pair
    .slice(separator + 1)
    .trim()
    .replace(/^"/, '')
  const beginning = decodedBeginning(value)
  return secretPrefixes.some(prefix => beginning.startsWith(prefix))
}

/** Each of its characters may take three. */
const encodedLength = 3 * Math.max(...secretPrefixes.map(({ length }) => length))

/**
 * As much of a value as tells what it begins with. A reader may percent-decode it, so a decoded secret is a secret
 * too. Not by `decodeURIComponent`: a header has room for thousands of values at which it throws.
 */
function decodedBeginning(value: string): string {
  const beginning = value.slice(0, encodedLength)
  if (!beginning.includes('%')) return beginning
  return beginning.replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
}

/** True for a `Set-Cookie` that would overwrite one of the platform's cookies. */
export function setsPlatformCookie(header: string): boolean {
  // A browser takes `=token=x` for a cookie without a name, and sends it back as `token=x`.
  const named = header.replace(/^[=\s]+/, '')
  const end = named.search(/[=;]/)
  return ownNames.has((end < 0 ? named : named.slice(0, end)).trim())
}
