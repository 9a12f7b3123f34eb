import type { IncomingMessage } from 'node:http'
import { isIP, type BlockList } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Client } from './request-context.js'

const plain = (address: string): string => address.startsWith('::ffff:') ? address.slice(7) : address

const isTrusted = (address: string, trusted: BlockList): boolean => {
  const family = isIP(address)
  return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/** Who shares a budget: an IPv4 address, or the /64 from which one subscriber may take any IPv6 address. */
export function networkOf (address: string): string {
  if (isIP(address) !== 6) return address
  const [left = [], right = []] = address.replace(/%.*/, '').split('::').map(half => half.split(':').filter(group => group !== ''))
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0')
  return [...left, ...zeros, ...right].slice(0, 4).map(group => parseInt(group, 16).toString(16)).join(':')
}

/** Who is calling. `X-Forwarded-*` is believed only as far as it was written by proxies of TRUST_PROXY. */
export function clientOf (request: IncomingMessage, trusted: BlockList | undefined): Client {
  const peer = plain(request.socket.remoteAddress ?? '')
  const encrypted = (request.socket as TLSSocket).encrypted === true
  if (trusted === undefined || !isTrusted(peer, trusted)) return { ip: peer, secure: encrypted }
  const forwarded = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',').map(item => plain(item.trim())).filter(item => isIP(item) !== 0)
  // Read from the right: the nearest proxy wrote last, and only what trusted ones wrote is true.
  let ip = peer
  for (const address of forwarded.reverse()) {
    ip = address
    if (!isTrusted(address, trusted)) break
  }
  return { ip, secure: encrypted || request.headers['x-forwarded-proto'] === 'https' }
}
