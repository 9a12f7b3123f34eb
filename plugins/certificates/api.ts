import { event, extensionPoint, publishedTable, service } from 'busbar/sdk'

/** All certificates. Foreign keys to it are `on delete restrict`: what a domain serves is not deleted. */
export const certificateTable = publishedTable('certificates.certificate', {
  key: 'id',
  columns: {
    id: 'uuid',
    /** Unique on the instance. */
    name: 'text',
    not_after: 'timestamptz'
  }
})

/** What is public of a certificate. */
export interface CertificateFacts {
  readonly id: string
  readonly name: string
  /** The whole distinguished name. */
  readonly issuer: string
  /** The names and addresses that it is for, in lower case; a name may begin with `*.`. */
  readonly subjects: readonly string[]
  readonly notBefore: Date
  readonly notAfter: Date
}

/** With its key, in clear: for who serves it, and for nothing else. */
export interface ServedCertificate {
  readonly id: string
  /** The leaf first, then its issuers in order. */
  readonly chainPem: string
  readonly keyPem: string
}

export interface CertificateStore {
  /** Undefined when there is none. */
  find(certificateId: string): Promise<CertificateFacts | undefined>
  /** Those of these ids that are there and can be decrypted; the log says which cannot. */
  open(certificateIds: readonly string[]): Promise<readonly ServedCertificate[]>
}
export const certificateStore = service<CertificateStore>('certificates.store')

/** Who serves certificates says which hostnames it serves each with, so that a refusal to delete one can name them. */
export interface CertificateUse {
  /** By certificate, in order; those that are not used may be left out. */
  hostnames(certificateIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>
}
export const certificateUses = extensionPoint<CertificateUse>('certificates.uses')

/** Whether a certificate for `subjects` is valid for `hostname`, which is in lower case and may itself be a wildcard. */
export function coversHostname(subjects: readonly string[], hostname: string): boolean {
  return subjects.includes(hostname) || subjects.includes(wildcardOf(hostname))
}

/** The one-label wildcard over a name: `*.example.com` of `www.example.com`. */
export function wildcardOf(hostname: string): string {
  const dot = hostname.indexOf('.')
  return dot < 0 ? `*.${hostname}` : `*${hostname.slice(dot)}`
}

/** It ends within 30 days. Told once. */
export const certificateExpiring = event<{
  readonly certificateId: string
  readonly name: string
  /** RFC 3339. */
  readonly notAfter: string
  readonly daysLeft: number
}>('certificates.expiring')

/** It has ended. Told once. */
export const certificateExpired = event<{
  readonly certificateId: string
  readonly name: string
  /** RFC 3339. */
  readonly notAfter: string
}>('certificates.expired')
