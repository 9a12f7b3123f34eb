import type { BlockList } from 'node:net'
import type { ConfigWarning } from 'busbar/sdk'
import { isLoopback, type Settings } from './environment.js'

interface WarnedSettings
  extends Pick<
    Settings,
    | 'host'
    | 'publicUrl'
    | 'behindProxy'
    | 'secureCookies'
    | 'transportSecurity'
    | 'trustedProxies'
    | 'databaseUrl'
  > {
  /** ENCRYPTION_KEY and ENCRYPTION_KEYS, by their ids. */
  readonly keys: ReadonlyMap<string, Buffer>
}

/** What is wrong with the settings of the platform itself. Nothing is, where only its own machine reaches it. */
export function settingsWarnings(settings: WarnedSettings): ConfigWarning[] {
  return [
    ...addressWarnings(settings),
    ...(trustsEverybody(settings.trustedProxies) ? [everyProxy] : []),
    ...databaseWarnings(settings.databaseUrl),
    ...[...settings.keys].flatMap(([id, key]) => (isPattern(key) ? [weakKey(id)] : []))
  ]
}

function addressWarnings(settings: WarnedSettings): ConfigWarning[] {
  const { publicUrl, behindProxy } = settings
  const isReached = !isLoopback(settings.host) || behindProxy
  if (!isReached) return publicUrl === undefined ? [] : encryptionWarnings(publicUrl, settings)
  if (publicUrl === undefined || isLoopback(hostOf(publicUrl)))
    return [noPublicUrl, ...(behindProxy ? [] : [plainHttp])]
  return encryptionWarnings(publicUrl, settings)
}

function encryptionWarnings(publicUrl: string, settings: WarnedSettings): ConfigWarning[] {
  if (isLoopback(hostOf(publicUrl))) return []
  if (publicUrl.startsWith('http:')) return [plainHttp]
  return [
    ...(settings.secureCookies ? [] : [insecureCookies]),
    ...(settings.transportSecurity ? [] : [noTransportSecurity])
  ]
}

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, '')

const noPublicUrl: ConfigWarning = {
  code: 'no_public_url',
  message:
    'the platform is reached from other machines and does not know its address, so links in mail and in notifications are missing or lead nowhere',
  remedy:
    'set PUBLIC_BASE_URL to the address of the dashboard, such as https://busbar.example.com, and start the platform again'
}

const plainHttp: ConfigWarning = {
  code: 'http_only',
  message:
    'the platform is reached over plain HTTP, so everybody on the way can read passwords, sessions and tokens',
  remedy:
    'put a proxy with a certificate in front of it, set TRUST_PROXY to the address of the proxy, PUBLIC_BASE_URL to its https:// address, SECURE_COOKIES=true and TLS_ENABLED=true, and start the platform again'
}

const insecureCookies: ConfigWarning = {
  code: 'insecure_cookies',
  message:
    'sessions are kept in cookies that browsers send over plain HTTP too, although the platform has an https:// address',
  remedy: 'set SECURE_COOKIES=true and start the platform again'
}

const noTransportSecurity: ConfigWarning = {
  code: 'no_hsts',
  message:
    'browsers are not told to use HTTPS alone (Strict-Transport-Security), although the platform has an https:// address',
  remedy: 'set TLS_ENABLED=true and start the platform again'
}

const everyProxy: ConfigWarning = {
  code: 'trusts_every_proxy',
  message:
    'TRUST_PROXY holds every address, so each client can say which address it has: limits by address, lock-outs and the audit log are worth nothing',
  remedy: 'set TRUST_PROXY to the addresses of your own proxies and start the platform again'
}

/** Addresses of the internet that no one proxy has. */
const strangers = ['1.1.1.1', '203.0.113.77', '8.8.4.4']
const trustsEverybody = (trusted: BlockList | undefined): boolean =>
  trusted !== undefined &&
  (strangers.every(address => trusted.check(address, 'ipv4')) ||
    ['2001:db8::1', '2a00::1'].every(address => trusted.check(address, 'ipv6')))

/** Those that images, examples and people begin with. */
const usualPasswords = new Set([
  'postgres',
  'postgresql',
  'password',
  'passwort',
  'busbar',
  'changeme',
  'change-me',
  'secret',
  'admin',
  'root',
  'example',
  'test',
  '123456',
  '12345678'
])

function databaseWarnings(databaseUrl: string | undefined): ConfigWarning[] {
  if (databaseUrl === undefined || !URL.canParse(databaseUrl)) return []
  const { password, username } = new URL(databaseUrl)
  // Without one there it may come from elsewhere, or the server asks for none.
  const isUsual = usualPasswords.has(decoded(password).toLowerCase()) || password === username
  return password !== '' && isUsual
    ? [
        {
          code: 'default_database_password',
          message: 'the password in DATABASE_URL is one that everybody tries first',
          remedy:
            'give the database user another one (ALTER ROLE … PASSWORD …), put that into DATABASE_URL, and start the platform again'
        }
      ]
    : []
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Of random bytes hardly ever so few are different ones; neither do they count up. */
const fewestDifferent = 16
const isPattern = (key: Buffer): boolean =>
  new Set(key).size < fewestDifferent ||
  key.every((byte, at) => at === 0 || byte === (((key[at - 1] ?? 0) + 1) & 0xff))

const weakKey = (id: string): ConfigWarning => ({
  code: 'weak_encryption_key',
  message: `the encryption key ${id} is a pattern that can be guessed, and everything that is stored encrypted opens with it`,
  remedy:
    'add a key of 64 random hexadecimal digits (openssl rand -hex 32) to ENCRYPTION_KEYS, make it ENCRYPTION_KEY_CURRENT, keep this one for what it has sealed, and set stored secrets anew'
})
