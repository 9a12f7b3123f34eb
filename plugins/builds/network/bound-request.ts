import type { LookupAddress } from 'node:dns'
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { type AnswerFault, guardAnswer } from 'busbar/sdk/http1'

interface BoundRequest {
  readonly url: URL
  /** GET unless given. */
  readonly method?: 'GET' | 'HEAD'
  /** The addresses that were checked: the connection is made to one of these, and no name server is asked again. */
  readonly addresses: readonly LookupAddress[]
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Where nothing secret is sent and nothing of the answer is trusted. */
  readonly acceptsAnyCertificate?: true
}

const told: Readonly<Record<AnswerFault, string>> = {
  interim: 'it sends interim answers (1xx) one after another and no final one',
  none: 'it ends the connection without an answer, or for another protocol that was not requested (101)'
}

/** The host answered, and not by valid HTTP. */
export class NoAnswer extends Error {
  constructor(fault: AnswerFault) {
    super(told[fault])
  }
}

/** Asks on a connection of its own; redirects are the caller's. The body has not begun: read it or destroy it. */
export async function openBound({
  url,
  method = 'GET',
  addresses,
  headers,
  signal,
  acceptsAnyCertificate
}: BoundRequest): Promise<IncomingMessage> {
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest
  const options: RequestOptions & { rejectUnauthorized?: boolean } = {
    // A pooled connection would be found by its name, not by its address.
    agent: false,
    method,
    lookup: boundLookup(addresses),
    headers,
    signal,
    ...(acceptsAnyCertificate === true && { rejectUnauthorized: false })
  }
  return await new Promise((resolve, reject) => {
    const outgoing = open(withoutUser(url), options, resolve)
    // Stays: a body that breaks off is told here as well.
    outgoing.on('error', reject)
    guardAnswer(outgoing, fault => reject(new NoAnswer(fault)))
    outgoing.end()
  })
}

/** The same address without the user and the password in it: node would send them as credentials. */
export function withoutUser(url: URL): URL {
  const plain = new URL(url)
  plain.username = plain.password = ''
  return plain
}

/** The host of an address as name servers and address lists know it. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

export const redirectStatuses: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308])

const boundLookup =
  (addresses: readonly LookupAddress[]): NonNullable<RequestOptions['lookup']> =>
  (_host, options, callback) => {
    const [first] = addresses
    if (options.all === true || first === undefined) callback(null, [...addresses])
    else callback(null, first.address, first.family)
  }
