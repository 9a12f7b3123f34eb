import { BlockList, isIP } from 'node:net'
import { plainAddress } from 'busbar/sdk'

/** Whether an address is in one of these ranges, which were checked when they were saved. */
export function addressRanges(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family)
  }
  return written => {
    // An IPv4 client of a socket for both has an address of IPv6.
    const address = plainAddress(written)
    const version = isIP(address)
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }
}
