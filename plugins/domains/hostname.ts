import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const topLabel = /^([a-z]{2,63}|xn--[a-z0-9-]{1,59})$/
/** No name of a host: RFC 6761 and 7686. */
const neverHosts = new Set(['invalid', 'onion', 'arpa'])

/** What is wrong with it, as the rest of a sentence that begins with it. */
interface HostnameFault {
  readonly fault: string
}

/**
 * A hostname as it is kept: in lower case, without a dot at its end, other scripts as `xn--…`. A star may stand for
 * the first label.
 */
export function readHostname(written: string): string | HostnameFault {
  const trimmed = written.trim()
  if (trimmed.length > 1000) return { fault: 'is longer than any hostname' }
  const given = trimmed.toLowerCase().replace(/\.$/, '')
  if (given === '') return { fault: 'must not be empty' }
  if (/[/:@?#\s]/.test(given)) return { fault: 'is a name alone, without scheme, port, path and blanks' }
  if (isIP(given) !== 0) return { fault: 'is an address; give a name that leads to it' }
  const isWildcard = given.startsWith('*.')
  const rest = isWildcard ? given.slice(2) : given
  if (rest.includes('*')) return { fault: 'may have a star as its whole first label only' }
  const name = toAscii(rest)
  if (name === undefined) return { fault: 'has characters that no hostname has' }
  const hostname = isWildcard ? `*.${name}` : name
  if (hostname.length > 253) return { fault: 'is longer than 253 characters' }
  const labels = name.split('.')
  if (!labels.every(part => label.test(part)))
    return {
      fault:
        'has a label that is empty, longer than 63 characters, or of other characters than a-z, 0-9 and inner hyphens'
    }
  const top = labels.at(-1) ?? ''
  if (labels.length < 2)
    return { fault: isWildcard ? 'would be every name below a top level' : 'needs a dot: www.example.com' }
  if (!topLabel.test(top)) return { fault: 'ends in no top level, which has two letters or more' }
  if (neverHosts.has(top)) return { fault: `ends in .${top}, which leads to no host` }
  return hostname
}

/** Undefined where it cannot be written in ASCII. What is ASCII is not changed. */
function toAscii(name: string): string | undefined {
  const isPlain = /^[a-z0-9.-]*$/.test(name)
  if (isPlain && !name.includes('xn--')) return name
  // Percent signs would be taken for escapes.
  if (/[%[\]\\^|<>"`{}]/.test(name)) return undefined
  const ascii = domainToASCII(name)
  return ascii === '' || (isPlain && ascii !== name) ? undefined : ascii
}

export const isWildcard = (hostname: string): boolean => hostname.startsWith('*.')

/** Whether a wildcard stands for `hostname`, which may be one itself. */
const isUnder = (wildcard: string, hostname: string): boolean =>
  isWildcard(wildcard) &&
  hostname.endsWith(wildcard.slice(1)) &&
  !hostname.slice(0, 1 - wildcard.length).includes('.')

/** Whether a request for `name` could come by both: one is the other, or a wildcard that stands for it. */
export const overlaps = (a: string, b: string): boolean => a === b || isUnder(a, b) || isUnder(b, a)

/** By which names browsers ask for the platform. */
export interface PlatformNames {
  /** Where it listens. */
  readonly host: string
  readonly publicUrl: string | undefined
  /** The one by which the proxy serves it. */
  readonly dashboard: string | undefined
}

/** Whether any host by which browsers ask for the platform would come by `hostname`. Cookies ignore ports. */
export function isPlatformHost(hostname: string, { host, publicUrl, dashboard }: PlatformNames): boolean {
  const named = publicUrl === undefined ? [] : [new URL(publicUrl).hostname]
  return ['localhost', host, ...named, ...(dashboard === undefined ? [] : [dashboard])].some(own =>
    overlaps(hostname, own.toLowerCase())
  )
}
