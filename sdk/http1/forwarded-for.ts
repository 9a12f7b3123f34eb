import { BlockList, isIP } from 'node:net'
import { plainAddress } from '../address.js'

/** Whether an address is in one of some ranges. */
export type AddressTest = (address: string) => boolean

/** Of ranges as they are written: `10.0.0.0/8`, `::1`. Undefined where one of them is none. */
export function addressesIn(ranges: readonly string[]): AddressTest | undefined {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits, ...more] = range.split('/')
    const version = isIP(address)
    const most = version === 6 ? 128 : 32
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : NaN
    if (version === 0 || address.includes('%') || more.length > 0 || !(length <= most)) return undefined
    list.addSubnet(address, length, version === 6 ? 'ipv6' : 'ipv4')
  }
  return written => {
    // An IPv4 client of a socket for both has an address of IPv6.
    const address = plainAddress(written)
    const version = isIP(address)
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }
}

/** Who has asked, through which proxies that are believed. */
export interface Origin {
  /** The client: the first address, from the right, that is of no such proxy. */
  readonly address: string
  /** `X-Forwarded-For` for whoever is asked next: the client first, then the proxies. What others have claimed is not in it. */
  readonly forwardedFor: string
}

/**
 * Reads `X-Forwarded-For` from its right end, where the nearest proxy has written, as far as proxies that are believed have
 * written it. From any other peer it is not read at all. What is no address ends it: nobody knows what is left of that.
 */
export function originOf(peer: string, header: string | undefined, isTrusted: AddressTest): Origin {
  let address = plainAddress(peer)
  let forwardedFor = address
  let end = header?.length ?? 0
  while (header !== undefined && end > 0 && isTrusted(address)) {
    const comma = header.lastIndexOf(',', end - 1)
    const next = addressIn(header.slice(comma + 1, end))
    if (next === undefined) break
    address = next
    forwardedFor = `${next}, ${forwardedFor}`
    end = comma
  }
  return { address, forwardedFor }
}

/** With a port too, as some proxies write it. */
function addressIn(written: string): string | undefined {
  const item = written.trim()
  // An address with its port has 47 characters at most.
  if (item === '' || item.length > 64) return undefined
  const address = plainAddress(
    item.startsWith('[')
      ? item.slice(1).replace(/\](:\d{1,5})?$/, '')
      : item.replace(/^([\d.]+):\d{1,5}$/, '$1')
  )
  return isIP(address) === 0 || address.includes('%') ? undefined : address
}
