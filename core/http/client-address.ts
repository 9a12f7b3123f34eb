import type { IncomingMessage } from 'node:http'
import { type BlockList, isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { plainAddress } from 'busbar/sdk'
import type { Client } from './request-context.js'

export const isTrusted = (address: string, trusted: BlockList): boolean => {
  const family = isIP(address)
  return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/** Who is calling. `X-Forwarded-*` is believed only as far as it was written by proxies of TRUST_PROXY. */
export function clientOf(request: IncomingMessage, trusted: BlockList | undefined): Client {
  const peer = plainAddress(request.socket.remoteAddress ?? '')
  const encrypted = (request.socket as TLSSocket).encrypted === true
  if (trusted === undefined || !isTrusted(peer, trusted)) return { ip: peer, secure: encrypted }
  const forwarded = [request.headers['x-forwarded-for'] ?? []]
    .flat()
    .join(',')
    .split(',')
    .map(item => plainAddress(item.trim()))
    .filter(item => isIP(item) !== 0)
  // Read from the right: the nearest proxy wrote last, and only what trusted ones wrote is true.
  let ip = peer
  for (const address of forwarded.reverse()) {
    ip = address
    if (!isTrusted(address, trusted)) break
  }
  return { ip, secure: encrypted || request.headers['x-forwarded-proto'] === 'https' }
}
