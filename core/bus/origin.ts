/**
 * Whether a browser page may open a socket: pages of our own host, and those named in CORS_ORIGINS, in lowercase.
 * A request without Origin does not come from a page.
 */
export function originAllowed(
  origin: string | undefined,
  host: string | undefined,
  corsOrigins: readonly string[]
): boolean {
  if (origin === undefined) return true
  if (corsOrigins.includes(origin.toLowerCase())) return true
  if (host === undefined || !URL.canParse(origin)) return false
  const { protocol, host: ownHost } = new URL(origin)
  if (ownHost === '') return false
  // By way of a URL, so that a default port counts as none.
  const asked = `${protocol}//${host}`
  return URL.canParse(asked) && new URL(asked).host === ownHost
}
