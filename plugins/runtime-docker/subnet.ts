import { isIPv4 } from 'node:net'

/** A range of IPv4 addresses, both ends included, as numbers. */
export interface AddressRange {
  readonly first: number
  readonly last: number
}

/** How large a project's network is: a /26, 61 containers. */
export const projectPrefix = 26
/** And the one of its builds: a /28, 13 steps at once. */
export const buildsPrefix = 28

const sizeOf = (prefix: number): number => 2 ** (32 - prefix)

/** `10.1.0.0/16` as a range; undefined when it is not written like this. */
export function parseRange(text: string): AddressRange | undefined {
  const [, address = '', prefixText = ''] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text.trim()) ?? []
  return prefixText === '' ? undefined : rangeOf(address, Number(prefixText))
}

/** The range that `address` lies in; undefined when it is no address. */
export function rangeOf(address: string, prefix: number): AddressRange | undefined {
  if (!isIPv4(address) || prefix > 32) return undefined
  const size = sizeOf(prefix)
  const value = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
  const first = Math.floor(value / size) * size
  return { first, last: first + size - 1 }
}

export const overlaps = (a: AddressRange, b: AddressRange): boolean => a.first <= b.last && b.first <= a.last
export const contains = (outer: AddressRange, inner: AddressRange): boolean =>
  outer.first <= inner.first && inner.last <= outer.last

/** Where networks are made, as configured and as ranges. */
export interface Pools {
  readonly text: string
  readonly ranges: readonly AddressRange[]
}

/** BUSBAR_SUBNETS; undefined when one of the ranges cannot hold a project's network. */
export function parsePools(text: string): Pools | undefined {
  const ranges = text.split(',').map(parseRange)
  return ranges.every(range => range !== undefined && range.last - range.first + 1 >= sizeOf(projectPrefix))
    ? { text, ranges: ranges.filter(range => range !== undefined) }
    : undefined
}

/** The lowest free subnet of the pools, as `10.201.0.0/26`; undefined when everything is in use. */
export function allocateSubnet(
  pools: readonly AddressRange[],
  used: readonly AddressRange[],
  prefix = projectPrefix
): string | undefined {
  const size = sizeOf(prefix)
  const nextBoundary = (last: number): number => Math.floor(last / size) * size + size
  const ascending = [...used].sort((a, b) => a.first - b.first)
  for (const pool of pools) {
    let first = pool.first
    for (const range of ascending) {
      if (range.last >= first && range.first < first + size) first = nextBoundary(range.last)
    }
    if (first + size - 1 <= pool.last) return `${formatAddress(first)}/${prefix}`
  }
  return undefined
}

const formatAddress = (value: number): string =>
  [24, 16, 8, 0].map(shift => Math.floor(value / 2 ** shift) % 256).join('.')
