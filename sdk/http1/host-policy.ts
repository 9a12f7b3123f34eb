import { BlockList, isIP } from 'node:net'
import { privateRanges } from './private-ranges.js'

/** Which private and local addresses users may make this machine connect to: for a repository, a registry, a bucket. */
export interface HostPolicy {
  readonly allowsAll: boolean
  readonly names: ReadonlySet<string>
  readonly ranges: BlockList
}

const privateAddresses = blockList([...privateRanges.ipv4, ...privateRanges.ipv6])

/** Where clouds hand out the credentials of the machine. */
const metadataAddresses = blockList([
  '169.254.169.254/32',
  '169.254.170.2/32',
  '169.254.170.23/32',
  '169.254.42.42/32',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:ec2::254/128',
  'fd00:ec2::23/128',
  'fd00:42::42/128',
  'fd20:ce::254/128',
  '64:ff9b::a9fe:a9fe/128',
  '2002:a9fe:a9fe::/48'
])

/** `allow`, `deny`, or host names, addresses and ranges separated by commas or spaces; undefined when it is none of these. */
export function parseHostPolicy(setting: string): HostPolicy | undefined {
  const value = setting.trim().toLowerCase()
  const names = new Set<string>()
  const ranges = new BlockList()
  if (value !== 'allow' && value !== 'deny') {
    for (const entry of value.split(/[\s,]+/).filter(text => text !== '')) {
      if (addRange(ranges, entry)) continue
      if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(entry)) return undefined
      names.add(entry)
    }
  }
  return { allowsAll: value === 'allow', names, ranges }
}

/** Where the operator says nothing: a platform that only this machine reaches deploys what its own people choose. */
export const usualHostPolicy = (isLoopbackOnly: boolean): HostPolicy => ({
  allowsAll: isLoopbackOnly,
  names: new Set(),
  ranges: new BlockList()
})

/** Why `host` is not connected to at `address`; null when it may be. */
export function refusalOf(policy: HostPolicy, host: string, address: string): 'metadata' | 'private' | null {
  if (isIn(metadataAddresses, address)) return 'metadata'
  if (policy.allowsAll || policy.names.has(host.toLowerCase()) || isIn(policy.ranges, address)) return null
  return isIn(privateAddresses, address) ? 'private' : null
}

/** The operator has named it: whatever it answers may be shown. A name that only leads into a listed range may lead elsewhere a moment later. */
export const isAllowlisted = (policy: HostPolicy, host: string): boolean =>
  policy.allowsAll || policy.names.has(host.toLowerCase()) || (isIP(host) !== 0 && isIn(policy.ranges, host))

/** Of a network that this machine is in, or of no network at all. */
export const isPrivateAddress = (address: string): boolean => isIn(privateAddresses, address)

const isIn = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) addRange(list, range)
  return list
}

/** False when the text is neither an address nor a range. */
function addRange(list: BlockList, text: string): boolean {
  const [address = '', prefixText, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  const longest = version === 6 ? 128 : 32
  const prefix = prefixText === undefined ? longest : /^\d{1,3}$/.test(prefixText) ? Number(prefixText) : NaN
  if (!(prefix <= longest)) return false
  list.addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4')
  return true
}
