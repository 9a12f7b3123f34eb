import type { JsonObject } from './json.js'

/**
 * The rules of `sdk/http1/forwarding/platform-cookies.ts` in the words of Caddy: the platform's session reaches no application,
 * and no application sets it.
 */
const secretPrefixes = ['busbar_ses_', 'busbar_ref_', 'busbar_dev_']
const ownNames = ['token', 'refresh_token', 'csrf_token', 'known_device']

/** A text as it is, or with any of its characters percent-encoded. */
const maybeEncoded = (text: string): string =>
  [...text]
    .map(character => {
      const hex = character.charCodeAt(0).toString(16)
      const digits = hex.replace(/[a-f]/g, digit => `[${digit}${digit.toUpperCase()}]`)
      return `(?:${character}|%${digits})`
    })
    .join('')

const secret = `(?:${secretPrefixes.map(maybeEncoded).join('|')})`

/** Takes the platform's cookies out of a `Cookie` header, pair by pair. */
export const cookieReplacements: readonly JsonObject[] = [
  { search_regexp: `(?:^|;)[^;=]*=\\s*"?${secret}[^;]*`, replace: '' },
  { search_regexp: '(?:^|;)\\s*csrf_token\\s*=[^;]*', replace: '' },
  { search_regexp: '^[;\\s]+', replace: '' }
]

/**
 * Empties a `Set-Cookie` of one of the platform's names. Caddy takes headers away by name only, never one of several values; browsers
 * ignore one that is empty.
 */
export const setCookieReplacements: readonly JsonObject[] = [
  { search_regexp: `(?s)^[=\\s]*(?:${ownNames.join('|')})\\s*(?:[=;].*)?$`, replace: '' }
]

/** What a `Set-Cookie` of an answer that changes the protocol may not have in it: Caddy passes its headers on untouched. */
export const suspectSetCookies: readonly string[] = ['*token*', '*known_device*']
