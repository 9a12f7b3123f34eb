import { RegistryFailure } from './registry-failure.js'

/** What a WWW-Authenticate asks for. */
type Challenge = { readonly kind: 'basic' } | { readonly kind: 'token'; readonly url: URL }

const parameter = /\b(realm|service|scope)=(?:"([^"]*)"|([^\s,"]+))/gi

/** Of several schemes the first that is known, as the engine does. Throws a `RegistryFailure`. */
export function readChallenge(header: string): Challenge {
  const scheme = /\b(basic|bearer)\s/i.exec(`${header} `)?.[1]?.toLowerCase()
  if (scheme === 'basic') return { kind: 'basic' }
  if (scheme === undefined) throw new RegistryFailure('credentials', 'it answers 401 Unauthorized')
  const said = new Map<string, string>()
  for (const [, key = '', quoted, plain] of header.matchAll(parameter))
    said.set(key.toLowerCase(), quoted ?? plain ?? '')
  const realm = said.get('realm') ?? ''
  if (!/^https?:/i.test(realm) || !URL.canParse(realm))
    throw new RegistryFailure('answer', 'it names no token service')
  const url = new URL(realm)
  for (const key of ['service', 'scope']) {
    const value = said.get(key)
    if (value !== undefined) url.searchParams.set(key, value)
  }
  return { kind: 'token', url }
}

/** Throws a `RegistryFailure` for what no header can carry. */
export function readToken(body: Buffer): string {
  try {
    const { token, access_token: access } = JSON.parse(body.toString()) as Readonly<Record<string, unknown>>
    const said = token ?? access
    if (typeof said === 'string' && /^[\x21-\x7e]{1,16000}$/.test(said)) return said
  } catch {
    // Told below.
  }
  throw new RegistryFailure('answer', 'its token service hands out no token')
}
