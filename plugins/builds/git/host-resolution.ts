import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { refusalOf, type HostPolicy } from './host-policy.js'
import { problems } from '../problems.js'

export interface HostRules {
  /** Read when it is needed: a mistake in it is told to who deploys. */
  readonly hostPolicy: () => HostPolicy
  readonly lookup: (host: string) => Promise<readonly LookupAddress[]>
}

/** The addresses of a host that somebody has named; throws when one of them must not be connected to. */
export async function resolveHost (host: string, { hostPolicy, lookup }: HostRules): Promise<readonly LookupAddress[]> {
  const policy = hostPolicy()
  const found = isIP(host) !== 0
    ? [{ address: host, family: isIP(host) }]
    : await lookup(host).catch((error: unknown) => { throw problems.hostUnknown({ host, reason: codeOf(error) }) })
  // Every address, because a connection may be made to any of them.
  for (const { address } of found) {
    const refusal = refusalOf(policy, host, address)
    if (refusal === 'metadata') throw problems.hostMetadata({ host, address })
    if (refusal === 'private') throw problems.hostPrivate({ host, address })
  }
  return found
}

const codeOf = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ENOTFOUND' ? 'no such host' : code === 'EAI_AGAIN' ? 'no name server answered' : String(code ?? error)
}
