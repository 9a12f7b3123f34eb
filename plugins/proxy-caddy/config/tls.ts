import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { ServedCertificate } from 'busbar/api/certificates'
import type { RouteTls, RoutingTable } from 'busbar/api/domains'
import type { CaddyOptions, IssuerOptions } from './caddy-options.js'
import type { JsonObject } from './json.js'

/** How each hostname of a table is served; that of the platform too. */
export function tlsByHost({ routes, platform }: RoutingTable): ReadonlyMap<string, RouteTls> {
  const modes = new Map<string, RouteTls>(routes.map(({ hostname, tls }) => [hostname, tls]))
  if (platform !== null) modes.set(platform.hostname, platform.tls)
  return modes
}

/** What is wrong with a certificate, which would keep Caddy from loading anything; null where nothing is. */
export function certificateFault({ chainPem, keyPem }: ServedCertificate): string | null {
  try {
    return new X509Certificate(chainPem).checkPrivateKey(createPrivateKey(keyPem))
      ? null
      : 'its key is another one'
  } catch {
    return 'it cannot be read'
  }
}

/**
 * The app `tls`, and by which certificate each connection is served. Names whose certificates are issued are told one by one, so
 * that nothing is asked for a name because a rule for it exists.
 */
export function tlsParts(
  table: RoutingTable,
  usable: readonly ServedCertificate[],
  options: CaddyOptions
): { readonly app: JsonObject; readonly policies: readonly JsonObject[] } {
  const automatic: string[] = []
  const custom = new Map<string, string[]>()
  for (const [hostname, tls] of tlsByHost(table)) {
    if (tls.mode === 'automatic') automatic.push(hostname)
    else if (tls.mode === 'custom' && usable.some(({ id }) => id === tls.certificateId))
      custom.set(tls.certificateId, [...(custom.get(tls.certificateId) ?? []), hostname])
  }
  automatic.sort()
  return {
    app: {
      certificates: {
        ...(automatic.length > 0 && { automate: automatic }),
        ...(usable.length > 0 && {
          load_pem: usable.map(({ id, chainPem, keyPem }) => ({
            certificate: chainPem,
            key: keyPem,
            tags: [id]
          }))
        })
      },
      automation: { policies: [{ issuers: [issuer(options)] }] },
      // To ask for OCSP staples of uploaded certificates is to wait for somebody else's server at each load.
      disable_ocsp_stapling: true
    },
    policies: [
      ...[...custom].map(([id, sni]) => ({
        match: { sni: sni.toSorted() },
        certificate_selection: { any_tag: [id] }
      })),
      {}
    ]
  }
}

function issuer({ issuer: given, httpPort, httpsPort }: CaddyOptions): JsonObject {
  if (given.kind === 'internal') return { module: 'internal' }
  return {
    module: 'acme',
    ...acme(given),
    challenges: {
      http: { alternate_port: httpPort },
      'tls-alpn': { alternate_port: httpsPort }
    }
  }
}

const acme = ({ directory, email, rootFile }: IssuerOptions & { readonly kind: 'acme' }): JsonObject => ({
  ...(directory !== undefined && { ca: directory }),
  ...(email !== undefined && { email }),
  ...(rootFile !== undefined && { trusted_roots_pem_files: [rootFile] })
})
