import type { HostReport } from './api.js'
import type { DnsVerdict } from './dns-check.js'
import type { SslMode, TlsState } from './domain-store.js'
import type { ServedLeaf } from './tls-probe.js'

type TlsStatus = 'unknown' | 'disabled' | 'pending' | 'failed' | 'active' | 'expiring' | 'expired' | 'local'

const dayMs = 86_400_000
const expiringMs = 14 * dayMs

interface Seen {
  readonly mode: SslMode
  readonly report: HostReport
  /** Undefined where nothing is served over TLS. */
  readonly leaf: ServedLeaf | undefined
  /** Undefined where DNS was not asked. */
  readonly dns: DnsVerdict | undefined
  readonly now: Date
}

/** What is told of a domain, by what is really served. */
export function tlsStateOf({ mode, report, leaf, dns, now }: Seen): Omit<TlsState, 'verified_at'> {
  const error =
    report.fault ?? (mode === 'off' ? null : (leafFault(leaf) ?? report.tlsFault)) ?? dns?.error ?? null
  const isLocal = mode === 'automatic' && report.localAuthority === true
  const status = mode === 'off' ? 'disabled' : servedStatus(leaf, { error, isLocal, now })
  const isGood = status === 'active' || status === 'expiring' || status === 'local'
  return {
    tls_status: status,
    tls_issuer: mode === 'off' ? null : (leaf?.issuer ?? null),
    tls_not_after: mode === 'off' ? null : (leaf?.notAfter ?? null),
    tls_last_checked_at: now,
    tls_error: isGood ? null : error,
    tls_advisory: isGood ? null : (dns?.advisory ?? null)
  }
}

const leafFault = (leaf: ServedLeaf | undefined): string | null =>
  leaf !== undefined && !leaf.covers
    ? 'The certificate that is served is not for this hostname: choose one that is, or use automatic'
    : null

interface Circumstances {
  readonly error: string | null
  /** What is issued by the proxy's own authority lasts for hours, so that it is always about to end. */
  readonly isLocal: boolean
  readonly now: Date
}

function servedStatus(leaf: ServedLeaf | undefined, { error, isLocal, now }: Circumstances): TlsStatus {
  if (leaf === undefined || !leaf.covers) return error === null ? 'pending' : 'failed'
  const left = leaf.notAfter.getTime() - now.getTime()
  if (left <= 0) return 'expired'
  return isLocal ? 'local' : left < expiringMs ? 'expiring' : 'active'
}
