import type { CertificateFacts } from 'busbar/api/certificates'
import { coversHostname } from 'busbar/api/certificates'
import { isUuid } from 'busbar/sdk'
import { readAdvancedConfig } from './advanced-config.js'
import type { DomainRow, DomainRules, SslMode } from './domain-store.js'
import { isWildcard, readHostname } from './hostname.js'
import { readPath } from './path-rule.js'
import { problems } from './problems.js'
import type { DomainBody } from './schemas.js'

const modes: readonly string[] = ['automatic', 'custom', 'off']

interface RuleContext {
  /** Undefined when it is added. */
  readonly before: DomainRow | undefined
  /** What a domain without `ssl_mode` gets: what the driver can do. */
  readonly defaultMode: SslMode
}

/** The rules that somebody asks for; throws what is wrong with them. Whether others have the name is not looked at. */
export function readRules(body: DomainBody, { before, defaultMode }: RuleContext): DomainRules {
  const hostname = readHostname(body.hostname)
  if (typeof hostname !== 'string') throw problems.badHostname({ fault: hostname.fault })
  const mode = modeOf(body, defaultMode)
  if (mode === 'automatic' && isWildcard(hostname)) throw problems.wildcardAutomatic({ hostname })
  const isForced = body.force_https ?? mode !== 'off'
  if (isForced && mode === 'off') throw problems.forceWithoutTls()
  const port = body.container_port ?? null
  if (port !== null && !(port >= 1 && port <= 65_535)) throw problems.badPort()
  const advanced = readAdvancedConfig(body.advanced_config)
  if ('fault' in advanced) throw problems.badAdvanced({ reason: advanced.fault })
  return {
    hostname,
    path: pathOf(body.path, 'path', before?.path ?? '/'),
    strip_path: body.strip_path ?? before?.strip_path ?? false,
    internal_path: withoutRoot(pathOf(body.internal_path, 'internal_path', before?.internal_path ?? '')),
    container_port: port,
    ssl_mode: mode,
    ssl_provider: body.ssl_provider ?? null,
    force_https: isForced,
    certificate_id: mode === 'custom' ? certificateOf(body) : null,
    advanced_config: advanced.handlers
  }
}

function modeOf({ ssl_mode: given, ssl_enabled: isEnabled }: DomainBody, defaultMode: SslMode): SslMode {
  if (given === 'dns_challenge') throw problems.dnsChallenge()
  if (given === undefined) return isEnabled === undefined ? defaultMode : isEnabled ? 'automatic' : 'off'
  if (!modes.includes(given)) throw problems.badSslMode()
  if (isEnabled !== undefined && isEnabled !== (given !== 'off')) throw problems.contradiction()
  return given as SslMode
}

function pathOf(given: string | null | undefined, field: string, otherwise: string): string {
  if (given === null || given === undefined) return otherwise
  const path = readPath(given)
  if (path === undefined) throw problems.badPath({ field })
  return path
}

const withoutRoot = (path: string): string => (path === '/' ? '' : path)

function certificateOf({ certificate_id: id }: DomainBody): string {
  if (id === undefined || id === null || id === '') throw problems.noCertificate()
  if (!isUuid(id)) throw problems.unknownCertificate()
  return id
}

/** Throws where a certificate is not for the hostname. */
export function checkCoverage(hostname: string, certificate: CertificateFacts | undefined): void {
  if (certificate === undefined) throw problems.unknownCertificate()
  if (!coversHostname(certificate.subjects, hostname))
    throw problems.notCovered({ name: certificate.name, hostname })
}
