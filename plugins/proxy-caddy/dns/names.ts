import { createHash } from 'node:crypto'
import { isIP } from 'node:net'

/** Nothing of the world has names below it (RFC 6761 keeps `.invalid` free). */
const applications = 'app.busbar.invalid.'
const addresses = 'at.busbar.invalid.'
const words = 'host.busbar.invalid.'

/** The name by which Caddy asks where an application is, on one of the ports that routes name. */
export function applicationName(applicationId: string, containerPort: number | null): string {
  const label = /^[a-z0-9-]{1,40}$/.test(applicationId)
    ? applicationId
    : createHash('sha256').update(applicationId).digest('hex').slice(0, 40)
  return `p${containerPort ?? ''}.a-${label}.${applications}`
}

/** A name for a host, since the target of a service record is a name; the address is in it, so that it is known for ever. */
export function hostName(host: string): string {
  const version = isIP(host)
  if (version === 4) return `v4-${host.replaceAll('.', '-')}.${addresses}`
  if (version === 6) return `v6-${hexOf(host)}.${addresses}`
  return `h-${createHash('sha256').update(host).digest('hex').slice(0, 40)}.${words}`
}

/** The address in such a name; undefined for any other. */
export function addressIn(name: string): string | undefined {
  const v4 = /^v4-(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})\.at\.busbar\.invalid\.?$/.exec(name)
  if (v4 !== null) {
    const address = v4.slice(1, 5).join('.')
    return isIP(address) === 4 ? address : undefined
  }
  const v6 = /^v6-([0-9a-f]{32})\.at\.busbar\.invalid\.?$/.exec(name)?.[1]
  return v6?.match(/.{4}/g)?.join(':')
}

/** All of an address of IPv6, as 32 digits. */
function hexOf(host: string): string {
  const [plain = ''] = host.split('%', 1)
  const mapped = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain)
  const written =
    mapped === null ? plain : `${mapped[1]}${hexPair(mapped[2], mapped[3])}:${hexPair(mapped[4], mapped[5])}`
  const [left = [], right = []] = written
    .split('::')
    .map(half => half.split(':').filter(group => group !== ''))
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0')
  return [...left, ...zeros, ...right].map(group => group.toLowerCase().padStart(4, '0')).join('')
}

const hexPair = (high = '0', low = '0'): string => ((Number(high) << 8) | Number(low)).toString(16)
