import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { problems } from '../problems.js'
import { type HostPolicy, refusalOf } from './host-policy.js'

export interface HostRules {
  readonly hostPolicy: HostPolicy
  readonly lookup: (host: string) => Promise<readonly LookupAddress[]>
}

/** What a host is connected to for, as an error names it. */
type HostUse = 'repository host' | 'host of a remote file' | 'registry' | 'token service of a registry'

/** The addresses of a host that a tenant has named; throws when one of them must not be connected to. */
export async function resolveHost(
  host: string,
  { hostPolicy, lookup }: HostRules,
  use: HostUse = 'repository host'
): Promise<readonly LookupAddress[]> {
  const found =
    isIP(host) !== 0
      ? [{ address: host, family: isIP(host) }]
      : await lookup(host).catch((error: unknown) => {
          throw problems.hostUnknown({ use, host, reason: codeOf(error) })
        })
  if (found.length === 0) throw problems.hostUnknown({ use, host, reason: 'it has no address' })
  // Every address, because a connection may be made to any of them.
  for (const { address } of found) {
    const refusal = refusalOf(hostPolicy, host, address)
    if (refusal === 'metadata') throw problems.hostMetadata({ use, host, address })
    if (refusal === 'private') throw problems.hostPrivate({ use, host, address })
  }
  return found
}

const codeOf = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ENOTFOUND'
    ? 'no such host'
    : code === 'EAI_AGAIN'
      ? 'no name server answered'
      : String(code ?? error)
}
