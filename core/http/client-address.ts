import type { IncomingMessage } from 'node:http'
import { type BlockList, isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { plainAddress } from 'busbar/sdk'
import { originOf } from 'busbar/sdk/http1'
import type { Client } from './request-context.js'

export const isTrusted = (address: string, trusted: BlockList): boolean => {
  const family = isIP(address)
  return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

interface Believed {
  /** TRUST_PROXY. */
  readonly trustedProxies: BlockList | undefined
  /** The request was handed on by a proxy of this installation, wherever that runs. */
  readonly isOwnProxy: boolean
}

/** Who is calling. `X-Forwarded-*` is believed only as far as it was written by proxies of TRUST_PROXY, or by one's own. */
export function clientOf(request: IncomingMessage, { trustedProxies, isOwnProxy }: Believed): Client {
  const peer = plainAddress(request.socket.remoteAddress ?? '')
  const encrypted = (request.socket as TLSSocket).encrypted === true
  const isBelieved = (address: string): boolean =>
    trustedProxies !== undefined && isTrusted(address, trustedProxies)
  if (!isOwnProxy && !isBelieved(peer)) return { ip: peer, secure: encrypted }
  const header = [request.headers['x-forwarded-for'] ?? []].flat().join(',')
  let isPeer = true
  const { address } = originOf(peer, header, hop => {
    const isFirst = isPeer
    isPeer = false
    return isFirst || isBelieved(hop)
  })
  return { ip: address, secure: encrypted || request.headers['x-forwarded-proto'] === 'https' }
}
