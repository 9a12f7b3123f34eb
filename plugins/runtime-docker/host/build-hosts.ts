import { isIP } from 'node:net'
import { privateRanges as networks } from 'busbar/sdk/http1'
import type { Family } from './packet-filter.js'

type Ranges = Readonly<Record<Family, readonly string[]>>

/** Which private addresses builds may reach beyond their machine. */
export interface BuildHosts {
  readonly allowsAll: boolean
  readonly allowed: Ranges
}

/** The same as for what the platform itself fetches for a build; a packet could have the form of IPv4 in IPv6 as well. */
export const privateRanges: Ranges = {
  ipv4: networks.ipv4,
  ipv6: ['::ffff:0:0/96', ...networks.ipv6]
}

/** Where clouds hand out the credentials of a machine. */
export const metadataRanges: Ranges = {
  ipv4: ['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
  ipv6: [
    'fd00:ec2::254/128',
    'fd00:ec2::23/128',
    'fd00:42::42/128',
    'fd20:ce::254/128',
    '64:ff9b::a9fe:a9fe/128',
    '2002:a9fe:a9fe::/48'
  ]
}

/** Without BUILD_PRIVATE_HOSTS: a platform that only its machine reaches builds what its own people choose. */
export const usualBuildHosts = (isLoopbackOnly: boolean): BuildHosts => ({
  allowsAll: isLoopbackOnly,
  allowed: { ipv4: [], ipv6: [] }
})

/** BUILD_PRIVATE_HOSTS: `allow`, `deny`, or addresses and ranges; undefined when it is written otherwise. Packets have no names. */
export function parseBuildHosts(text: string): BuildHosts | undefined {
  const value = text.trim().toLowerCase()
  if (value === 'allow' || value === 'deny') return usualBuildHosts(value === 'allow')
  const allowed: Record<Family, string[]> = { ipv4: [], ipv6: [] }
  for (const entry of value.split(',').map(part => part.trim())) {
    const [address = '', prefix, ...rest] = entry.split('/')
    const version = address.includes('%') ? 0 : isIP(address)
    const longest = version === 4 ? 32 : 128
    const length = prefix === undefined ? longest : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
    if (version === 0 || rest.length > 0 || !(length <= longest)) return undefined
    allowed[version === 4 ? 'ipv4' : 'ipv6'].push(`${address}/${length}`)
  }
  return { allowsAll: false, allowed }
}
