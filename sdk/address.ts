import { isIP } from 'node:net'

const mappedAddress = /^::ffff:(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})$/i

/** The IPv4 address in an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2), as a socket for both shows it; any other as it is. */
export const plainAddress = (address: string): string => mappedAddress.exec(address)?.[1] ?? address

/** Who shares a budget: an IPv4 address, or the /64 from which one subscriber may take any IPv6 address. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address
  const [left = [], right = []] = address
    .replace(/%.*/, '')
    .split('::')
    .map(half => half.split(':').filter(group => group !== ''))
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0')
  return [...left, ...zeros, ...right]
    .slice(0, 4)
    .map(group => parseInt(group, 16).toString(16))
    .join(':')
}
