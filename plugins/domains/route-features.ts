import { isIP } from 'node:net'
import { type HeaderChanges, type RouteFeature, rateLimitKeyOf } from './api.js'

export const featureTypes = ['basic_auth', 'headers', 'ip_allowlist', 'redirect', 'rate_limit'] as const
type FeatureType = (typeof featureTypes)[number]
export const isFeatureType = (text: string): text is FeatureType =>
  (featureTypes as readonly string[]).includes(text)

/** A rule that the configuration breaks. */
class ConfigFault extends Error {}

const bcrypt = /^\$2[aby]\$(\d{2})\$[./A-Za-z0-9]{53}$/
/** Each step takes twice as long: 14 takes a second of a processor for each password that is tried, 31 a day and a half. */
const leastCost = 4
const mostCost = 14
/** Without a star, which stands for any name in some proxies. */
const headerName = /^[A-Za-z0-9!#$%&'+.^_`|~-]{1,100}$/
/** These frame a message or belong to one connection. */
const framing = new Set([
  'connection',
  'cookie',
  'set-cookie',
  'content-length',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade'
])
const mostHeaders = 100
const mostRanges = 1000

/** The feature that a `config` is, or what is wrong with it as a sentence without a full stop. */
export function readFeature(type: FeatureType, config: unknown): RouteFeature | { readonly fault: string } {
  try {
    return readers[type](fieldsOf(config, 'config'))
  } catch (error) {
    if (error instanceof ConfigFault) return { fault: error.message }
    throw error
  }
}

type Fields = Readonly<Record<string, unknown>>

const readers: { readonly [K in FeatureType]: (config: Fields) => RouteFeature } = {
  basic_auth(config) {
    allow(config, ['username', 'hashed_password'])
    const username = textOf(config, 'username', 255)
    const hashedPassword = textOf(config, 'hashed_password', 100)
    if (username.includes(':')) throw new ConfigFault('username has no colon')
    const cost = Number(bcrypt.exec(hashedPassword)?.[1] ?? NaN)
    if (Number.isNaN(cost))
      throw new ConfigFault(
        'hashed_password is a bcrypt hash: it is made by the client, so that nobody else has the password'
      )
    if (cost < leastCost || cost > mostCost)
      throw new ConfigFault(`hashed_password has a cost of ${leastCost} to ${mostCost}; make it with 10`)
    return { type: 'basic_auth', username, hashedPassword }
  },

  headers(config) {
    allow(config, ['request', 'response'])
    if (config.request === undefined && config.response === undefined)
      throw new ConfigFault('request or response is needed')
    return {
      type: 'headers',
      ...(config.request !== undefined && { request: changesOf(config.request, 'request') }),
      ...(config.response !== undefined && { response: changesOf(config.response, 'response') })
    }
  },

  ip_allowlist(config) {
    allow(config, ['ranges'])
    const { ranges } = config
    if (!Array.isArray(ranges) || ranges.length === 0 || ranges.length > mostRanges)
      throw new ConfigFault(`ranges is a list of 1 to ${mostRanges} addresses or ranges`)
    for (const range of ranges)
      if (typeof range !== 'string' || !isRange(range))
        throw new ConfigFault(
          `ranges: ${JSON.stringify(range).slice(0, 60)} is no address and no range such as 10.0.0.0/8`
        )
    return { type: 'ip_allowlist', ranges: ranges as string[] }
  },

  redirect(config) {
    allow(config, ['from', 'to', 'status_code'])
    const from = textOf(config, 'from', 1000)
    const to = textOf(config, 'to', 2000)
    const statusCode = config.status_code ?? 301
    if (!/^\/[!-~]*$/.test(from)) throw new ConfigFault('from is a path that begins with /')
    if (!/^(https?:\/\/|\/)[!-~]*$/.test(to))
      throw new ConfigFault('to is a path or an http or https address')
    if (typeof statusCode !== 'number' || ![301, 302, 303, 307, 308].includes(statusCode))
      throw new ConfigFault('status_code is 301, 302, 303, 307 or 308')
    return { type: 'redirect', from, to, statusCode }
  },

  rate_limit(config) {
    allow(config, ['rate', 'zone', 'burst', 'key'])
    const rate = textOf(config, 'rate', 20)
    if (!/^[1-9]\d{0,5}\/[smh]$/.test(rate)) throw new ConfigFault('rate is such as 10/s, 100/m or 1000/h')
    const { burst, key } = config
    if (
      burst !== undefined &&
      (!Number.isInteger(burst) || (burst as number) < 0 || (burst as number) > 1_000_000)
    )
      throw new ConfigFault('burst is a whole number from 0')
    if (config.zone !== undefined) textOf(config, 'zone', 100)
    if (key !== undefined && rateLimitKeyOf(textOf(config, 'key', 200)) === undefined)
      throw new ConfigFault(
        'key is client_ip (which it is when left out), header.<name> such as header.X-Api-Key, or all'
      )
    return {
      type: 'rate_limit',
      rate,
      ...(burst !== undefined && { burst: burst as number }),
      ...(key !== undefined && { key: key as string })
    }
  }
}

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ConfigFault(`${what} is an object`)
  return value as Fields
}

function allow(fields: Fields, known: readonly string[]): void {
  for (const key of Object.keys(fields))
    if (!known.includes(key))
      throw new ConfigFault(`${JSON.stringify(key).slice(0, 60)} is unknown; known are ${known.join(', ')}`)
}

function textOf(fields: Fields, name: string, max: number): string {
  const value = fields[name]
  if (typeof value !== 'string' || value === '' || value.length > max || value.includes('\u0000'))
    throw new ConfigFault(`${name} is a text of 1 to ${max} characters`)
  return value
}

function changesOf(value: unknown, side: string): HeaderChanges {
  const fields = fieldsOf(value, side)
  allow(fields, ['set', 'add', 'delete'])
  const { set, add, delete: removed } = fields
  if (removed !== undefined && !(Array.isArray(removed) && removed.length <= mostHeaders))
    throw new ConfigFault(`${side}.delete is a list of names`)
  for (const name of (removed as unknown[] | undefined) ?? []) checkName(name, `${side}.delete`)
  return {
    ...(set !== undefined && { set: valuesOf(set, `${side}.set`) }),
    ...(add !== undefined && { add: valuesOf(add, `${side}.add`) }),
    ...(removed !== undefined && { delete: removed as string[] })
  }
}

function valuesOf(value: unknown, what: string): Readonly<Record<string, readonly string[]>> {
  const entries = Object.entries(fieldsOf(value, what))
  if (entries.length > mostHeaders) throw new ConfigFault(`${what} has more than ${mostHeaders} names`)
  for (const [name, values] of entries) {
    checkName(name, what)
    const isGood =
      Array.isArray(values) &&
      values.length > 0 &&
      values.length <= 20 &&
      values.every(one => typeof one === 'string' && /^[\t\u0020-\u007e\u0080-\u00ff]{0,2000}$/.test(one))
    if (!isGood) throw new ConfigFault(`${what}: ${name} has a list of texts that a header can hold`)
  }
  return Object.fromEntries(entries) as Record<string, string[]>
}

function checkName(name: unknown, what: string): void {
  if (typeof name !== 'string' || !headerName.test(name))
    throw new ConfigFault(`${what} has what is no name of a header`)
  if (framing.has(name.toLowerCase())) throw new ConfigFault(`${what}: ${name} is the proxy's own`)
}

function isRange(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0 || address.includes('%')) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}
