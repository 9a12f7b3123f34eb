import { Resolver } from 'node:dns/promises'
import { isWildcard } from './hostname.js'

/** What the name servers say of a hostname. */
type DnsAnswer =
  | { readonly addresses: readonly string[] }
  | { readonly failure: 'unknown name' | 'no answer' }

export interface DnsVerdict {
  /** Nothing can be served by this name as it is. */
  readonly error: string | null
  /** What an operator may want to know. */
  readonly advisory: string | null
  readonly leadsHere: boolean
}

const limitMs = 3000
/** Asked for below a wildcard: any name has to lead here. */
const probeLabel = 'busbar-check'

/** What the answer means where domains have to lead to `expected`. */
export function dnsVerdict(hostname: string, answer: DnsAnswer, expected: string): DnsVerdict {
  const kind = expected.includes(':') ? 'AAAA' : 'A'
  const record = `${kind} record ${hostname} → ${expected}`
  if ('failure' in answer)
    return answer.failure === 'unknown name'
      ? { error: `${hostname} is not in DNS: add the ${record}`, advisory: null, leadsHere: false }
      : {
          error: null,
          advisory: `The name servers did not answer for ${hostname}; it is looked up again`,
          leadsHere: false
        }
  if (answer.addresses.includes(expected)) return { error: null, advisory: null, leadsHere: true }
  const found = answer.addresses.slice(0, 4).join(', ')
  return {
    error: null,
    advisory: `${hostname} leads to ${found} and not to this server: if that is no proxy in front of it, change the ${record}`,
    leadsHere: false
  }
}

/** Asks for both kinds of addresses; three seconds at most. */
export async function lookUp(hostname: string, servers: readonly string[] | undefined): Promise<DnsAnswer> {
  const name = isWildcard(hostname) ? `${probeLabel}${hostname.slice(1)}` : hostname
  const resolver = new Resolver({ timeout: 1000, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  const timer = setTimeout(() => resolver.cancel(), limitMs)
  try {
    const outcomes = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? outcome.value : []))
    if (addresses.length > 0) return { addresses }
    const isUnknown = outcomes.every(
      outcome =>
        outcome.status === 'rejected' && ['ENOTFOUND', 'ENODATA'].includes(Object(outcome.reason).code)
    )
    return { failure: isUnknown ? 'unknown name' : 'no answer' }
  } finally {
    clearTimeout(timer)
  }
}
