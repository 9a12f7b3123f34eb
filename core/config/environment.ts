import { BlockList, isIP } from 'node:net'
import { resolve } from 'node:path'
import type { LogLevel } from '../log/log.js'

/** The platform's settings, read once from the environment. A variable that is set but empty counts as unset. */
export interface Settings {
  readonly directory: string
  readonly host: string
  readonly port: number
  readonly databaseUrl: string | undefined
  readonly role: 'all' | 'api' | 'worker'
  readonly corsOrigins: readonly string[]
  /** Undefined when `X-Forwarded-*` is ignored. */
  readonly trustedProxies: BlockList | undefined
  /** The same as it is written. */
  readonly trustedRanges: readonly string[]
  readonly secureCookies: boolean
  readonly transportSecurity: boolean
  readonly maxSocketsPerUser: number
  readonly maxEventStreamsPerUser: number
  /** Open connections in all, and of one client address; proxies of TRUST_PROXY have only the first limit. */
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  readonly logLevel: LogLevel
  readonly logFormat: 'console' | 'json'
  /** Folders with third-party plugins, besides `<BUSBAR_DIR>/plugins`. */
  readonly pluginFolders: readonly string[]
  /** The address of the dashboard, without a slash at its end; undefined where it is not configured and the network reaches the platform. */
  readonly publicUrl: string | undefined
  /** TRUST_PROXY is set: what listens on loopback may be reached from elsewhere. */
  readonly behindProxy: boolean
  /** Any variable, for the settings of plugins. */
  readonly variable: Variables
  /** Names of the variables with a value that have been asked for so far, in order. */
  readonly usedVariables: () => readonly string[]
}

/** The value of a variable when the platform was started; undefined when it was unset or empty. */
export type Variables = (name: string) => string | undefined

/** A setting that cannot be used; the message names the variable and what it takes. */
export class SettingError extends Error {}

export function readSettings(given: NodeJS.ProcessEnv): Settings {
  const environment = { ...given }
  const used = new Set<string>()
  const variable: Variables = name => {
    const value = environment[name]?.trim()
    if (value === undefined || value === '') return undefined
    used.add(name)
    return value
  }
  const choice = <T extends string>(name: string, values: readonly T[], fallback: T): T => {
    const value = variable(name)
    if (value === undefined) return fallback
    const found = values.find(one => one === value)
    if (found === undefined) throw new SettingError(`${name} is "${value}"; it takes ${values.join(', ')}`)
    return found
  }
  const number = (name: string, fallback: number, min: number, max: number): number => {
    const value = variable(name)
    if (value === undefined) return fallback
    const read = /^\d{1,9}$/.test(value) ? Number(value) : NaN
    if (!(read >= min && read <= max))
      throw new SettingError(`${name} is "${value}"; it takes a whole number from ${min} to ${max}`)
    return read
  }
  const list = (name: string): string[] =>
    (variable(name) ?? '')
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '')
  const host = variable('HOST') ?? '127.0.0.1'
  const port = number('PORT', 8080, 0, 65_535)
  return Object.freeze({
    directory: resolve(variable('BUSBAR_DIR') ?? '.busbar'),
    host,
    port,
    databaseUrl: variable('DATABASE_URL'),
    role: choice('BUSBAR_ROLE', ['all', 'api', 'worker'], 'all'),
    corsOrigins: list('CORS_ORIGINS').map(origin => origin.toLowerCase()),
    trustedProxies: blockList('TRUST_PROXY', list('TRUST_PROXY')),
    trustedRanges: list('TRUST_PROXY'),
    secureCookies: choice('SECURE_COOKIES', ['true', 'false'], 'false') === 'true',
    transportSecurity: choice('TLS_ENABLED', ['true', 'false'], 'false') === 'true',
    maxSocketsPerUser: number('MAX_WEBSOCKET_CONNS_PER_USER', 20, 1, 10_000),
    maxEventStreamsPerUser: number('MAX_EVENT_STREAMS_PER_USER', 50, 1, 10_000),
    maxConnections: number('MAX_CONNECTIONS', 4096, 1, 1_000_000),
    maxConnectionsPerAddress: number('MAX_CONNECTIONS_PER_ADDRESS', 500, 1, 1_000_000),
    logLevel: choice('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
    logFormat: choice('LOG_FORMAT', ['console', 'json'], 'console'),
    pluginFolders: list('BUSBAR_PLUGINS').map(folder => resolve(folder)),
    publicUrl: publicUrl(
      variable('PUBLIC_BASE_URL') ?? (isLoopback(host) ? `http://localhost:${port}` : undefined)
    ),
    behindProxy: variable('TRUST_PROXY') !== undefined,
    variable,
    usedVariables: () => [...used].sort()
  })
}

function publicUrl(base: string | undefined): string | undefined {
  if (base === undefined) return undefined
  const url = URL.canParse(base) ? new URL(base) : undefined
  if (
    url === undefined ||
    !['http:', 'https:'].includes(url.protocol) ||
    url.search !== '' ||
    url.hash !== ''
  )
    throw new SettingError(
      `PUBLIC_BASE_URL is "${base}"; it takes an address such as https://busbar.example.com`
    )
  return url.href.replace(/(?<!\/)\/+$/, '')
}

function blockList(name: string, entries: readonly string[]): BlockList | undefined {
  if (entries.length === 0) return undefined
  const addresses = new BlockList()
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0)
      throw new SettingError(`${name} holds "${entry}"; it takes addresses and ranges such as 10.0.0.0/8`)
    if (prefix === undefined) addresses.addAddress(address, family)
    else {
      const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : NaN
      if (!(bits >= 0 && bits <= (family === 'ipv6' ? 128 : 32)))
        throw new SettingError(`${name} holds "${entry}", whose prefix is out of range`)
      addresses.addSubnet(address, bits, family)
    }
  }
  return addresses
}

/** True for addresses that only this machine reaches. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127\./.test(host)
