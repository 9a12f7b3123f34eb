import { createSocket } from 'node:dgram'
import type { Clock } from 'busbar/sdk'
import { addressesIn, privateRanges } from 'busbar/sdk/http1'

/** The address of this server that domains have to lead to, and how it is known. */
export interface ServerAddress {
  /** Empty where it is not known. */
  readonly effective: string
  readonly source: 'env' | 'detected' | 'unknown'
}

const keptMs = 30_000
/** Addresses of documents (RFC 5737, RFC 3849): there is a route to them as to everything that is far away, and no host. */
const farAway = [
  { family: 'udp4', address: '192.0.2.1' },
  { family: 'udp6', address: '2001:db8::1' }
] as const
const isSpecial = addressesIn([...privateRanges.ipv4, ...privateRanges.ipv6])

export const isPublicAddress = (address: string): boolean => isSpecial?.(address) === false

/** What is set, else what is found out. */
export class ServerAddresses {
  #detected: { readonly at: number; readonly address: Promise<string | undefined> } | undefined

  constructor(
    private readonly given: string | undefined,
    private readonly clock: Pick<Clock, 'elapsed'>,
    private readonly detect: () => Promise<string | undefined> = detectAddress
  ) {}

  async read(): Promise<ServerAddress> {
    if (this.given !== undefined) return { effective: this.given, source: 'env' }
    const now = this.clock.elapsed()
    if (this.#detected === undefined || now - this.#detected.at > keptMs)
      this.#detected = { at: now, address: this.detect() }
    const address = await this.#detected.address
    return address === undefined
      ? { effective: '', source: 'unknown' }
      : { effective: address, source: 'detected' }
  }
}

/** The address that the machine reaches the internet from; undefined where that is no public one, as behind a router that translates. */
async function detectAddress(): Promise<string | undefined> {
  for (const { family, address } of farAway) {
    const own = await sourceTowards(family, address)
    if (own !== undefined && isPublicAddress(own)) return own
  }
  return undefined
}

/** By the routes of this machine: to connect a socket of UDP sends nothing. */
async function sourceTowards(family: 'udp4' | 'udp6', address: string): Promise<string | undefined> {
  const socket = createSocket(family)
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.connect(9, address, resolve)
    })
    return socket.address().address
  } catch {
    return undefined
  } finally {
    socket.close()
  }
}
