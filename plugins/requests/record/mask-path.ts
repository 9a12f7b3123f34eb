/** What stands in place of a secret, as everywhere else. */
const redacted = '[REDACTED]'

/** Parameters of which one word is one of these. */
const secretWords = new Set([
  'assertion',
  'auth',
  'authorization',
  'bearer',
  'code',
  'cookie',
  'csrf',
  'hmac',
  'jwt',
  'key',
  'keys',
  'nonce',
  'otp',
  'pass',
  'pin',
  'pw',
  'pwd',
  'session',
  'sid',
  'sig',
  'ticket',
  'totp',
  'xsrf'
])
/** Parameters in whose name one of these stands, however its words are joined. */
const secretParts = [
  'accesskey',
  'apikey',
  'credential',
  'passphrase',
  'passw',
  'privatekey',
  'secret',
  'sessionid',
  'signature',
  'token'
]
/** A name is not longer. */
const longestName = 200
/** An address in a parameter may have an address in one of its own. */
const deepest = 2

const deployHook = /(\/webhooks\/deploy\/)[^/]+/i

/**
 * A path with its query, in which the values of parameters that are called like secrets are masked, also where they stand in the
 * address that another parameter holds, and what is a secret as a part of a path: the token of a deploy hook.
 */
export function maskPath(target: string): string {
  return maskTarget(target, 0)
}

function maskTarget(target: string, depth: number): string {
  const end = target.search(/[?#]/)
  if (end < 0) return maskSegments(target, depth)
  return (
    maskSegments(target.slice(0, end), depth) + target.charAt(end) + maskPairs(target.slice(end + 1), depth)
  )
}

function maskSegments(path: string, depth: number): string {
  const shown = path.includes('%') ? decoded(path) : path
  const clean = deployHook.test(shown) ? shown.replace(deployHook, `$1${redacted}`) : path
  if (!clean.includes(';')) return clean
  // Parameters of a segment: `/cart;jsessionid=…/items`.
  return clean
    .split('/')
    .map(segment => {
      const at = segment.indexOf(';')
      return at < 0 ? segment : segment.slice(0, at + 1) + maskPairs(segment.slice(at + 1), depth)
    })
    .join('/')
}

const maskPairs = (text: string, depth: number): string =>
  text.includes('=')
    ? text
        .split(/([&;#?])/)
        .map(part => maskPair(part, depth))
        .join('')
    : text

function maskPair(pair: string, depth: number): string {
  const at = pair.indexOf('=')
  if (at < 0 || at === pair.length - 1) return pair
  const value = pair.slice(at + 1)
  return isSecretName(pair.slice(0, at)) || holdsSecret(value, depth)
    ? `${pair.slice(0, at + 1)}${redacted}`
    : pair
}

/** An address in it, escaped as values are, has a secret of its own. */
function holdsSecret(value: string, depth: number): boolean {
  if (depth >= deepest || !value.includes('%')) return false
  const inner = decoded(value)
  if (!inner.includes('=') && !inner.includes('/')) return false
  const shown = /[?#/]/.test(inner) ? maskTarget(inner, depth + 1) : maskPairs(inner, depth + 1)
  return shown !== inner
}

function isSecretName(written: string): boolean {
  // What is escaped twice is so for who reads the address twice.
  const name = decoded(decoded(written.slice(0, longestName)))
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
  if (words.some(word => secretWords.has(word))) return true
  const joined = words.join('')
  return secretParts.some(part => joined.includes(part))
}

/** What is no escape of UTF-8 stays as it stands. */
function decoded(text: string): string {
  if (!text.includes('%')) return text
  return text.replace(/(?:%[0-9a-f]{2})+/gi, escapes => {
    try {
      return decodeURIComponent(escapes)
    } catch {
      return escapes
    }
  })
}
