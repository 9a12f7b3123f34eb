import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { parseRange, type AddressRange } from './subnet.js'

/**
 * The IPv4 ranges that this machine already reaches without the engine's doing: the engine does not compare
 * a subnet that it is given with them. Two bridges with one range would leave a container out of reach.
 */
export async function hostRanges (): Promise<readonly AddressRange[]> {
  const addresses = Object.values(networkInterfaces()).flatMap(found => found ?? [])
    .map(({ cidr, family }) => family === 'IPv4' ? parseRange(cidr ?? '') : undefined)
    .filter(range => range !== undefined)
  // Only Linux has the table, and only there an engine that was killed leaves its bridges behind.
  const routes = await readFile('/proc/net/route', 'latin1').then(parseRoutes, () => [])
  return [...addresses, ...routes]
}

/**
 * The routed ranges of `/proc/net/route`. Unlike the list of interfaces it also holds those of a bridge that
 * nothing is plugged into. The default route is left out.
 */
export function parseRoutes (table: string): readonly AddressRange[] {
  return table.split('\n').slice(1).map(line => line.split('\t')).flatMap(([, destination = '', , , , , , mask = '']) => {
    const first = hostOrder(destination)
    const size = 2 ** 32 - hostOrder(mask)
    return Number.isNaN(first + size) || size === 2 ** 32 ? [] : [{ first, last: first + size - 1 }]
  })
}

/** `000AC90A` is 10.201.10.0: the kernel prints the four bytes as one number of a little-endian machine. */
const hostOrder = (hex: string): number =>
  /^[0-9A-F]{8}$/i.test(hex) ? Number.parseInt((hex.match(/../g) ?? []).reverse().join(''), 16) : Number.NaN
