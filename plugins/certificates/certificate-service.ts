import { randomUUID } from 'node:crypto'
import {
  askOrLeaveOut,
  type Clock,
  type Contributions,
  type Log,
  type Page,
  type Problem,
  type Rows,
  type Secrets
} from 'busbar/sdk'
import {
  type CertificateFacts,
  type CertificateStore as CertificateStoreService,
  type CertificateUse,
  type ServedCertificate,
  wildcardOf
} from './api.js'
import { readCertificate } from './certificate-reader.js'
import type { CertificateRow, CertificateStore, SealedRow } from './certificate-store.js'
import { problems } from './problems.js'
import type { CertificateAnswer, UploadBody, UsableCertificateAnswer } from './schemas.js'

interface CertificateServiceParts {
  readonly store: CertificateStore
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly uses: Contributions<CertificateUse>
}

const useLimitMs = 10_000
/** A refusal names so many hostnames, and says how many more there are. */
const mostNamed = 20
const stillReferenced: readonly unknown[] = ['23503', '23001']

export class CertificateService implements CertificateStoreService {
  constructor(private readonly parts: CertificateServiceParts) {}

  async list(page: Page): Promise<Rows<CertificateAnswer>> {
    const { rows, total } = await this.parts.store.list(page)
    const hostnames = await this.#hostnames(rows.map(({ id }) => id))
    return { rows: rows.map(row => answer(row, hostnames.get(row.id)?.length ?? 0)), total }
  }

  async upload({ name: given, cert_pem, key_pem }: UploadBody): Promise<CertificateAnswer> {
    const { store, secrets, clock } = this.parts
    const name = given.trim()
    if (name === '') throw problems.noName()
    const read = readCertificate(cert_pem, key_pem)
    const id = randomUUID()
    const row: SealedRow = {
      id,
      name,
      issuer: read.issuer,
      subjects: read.subjects,
      not_before: read.notBefore,
      not_after: read.notAfter,
      created_at: clock.now(),
      chain: secrets.seal(read.chainPem, placeOf(id, 'chain')),
      private_key: secrets.seal(read.keyPem, placeOf(id, 'private_key'))
    }
    if (!(await store.insert(row))) throw problems.nameTaken({ name })
    return answer(row, 0)
  }

  async remove(certificateId: string): Promise<void> {
    // A setting refers to one by no foreign key.
    const hostnames = (await this.#hostnames([certificateId])).get(certificateId) ?? []
    if (hostnames.length > 0) throw await this.#inUse(certificateId, hostnames)
    try {
      if (!(await this.parts.store.remove(certificateId))) throw problems.notFound({ certificateId })
    } catch (error) {
      if (!isReference(error)) throw error
      const now = (await this.#hostnames([certificateId])).get(certificateId) ?? []
      throw await this.#inUse(certificateId, now)
    }
  }

  async #inUse(certificateId: string, hostnames: readonly string[]): Promise<Problem> {
    const row = await this.parts.store.find(certificateId)
    return row === undefined
      ? problems.notFound({ certificateId })
      : problems.inUse({ name: row.name, hostnames: inWords(hostnames) }, { hostnames })
  }

  async usable(hostname: string | undefined, page: Page): Promise<Rows<UsableCertificateAnswer>> {
    const name = (hostname ?? '').trim().toLowerCase().replace(/\.$/, '')
    if (name === '') throw problems.noHostname()
    if (name.length > 253 || name.includes('\u0000')) return { rows: [], total: 0 }
    const { rows, total } = await this.parts.store.usable([name, wildcardOf(name)], page)
    return {
      rows: rows.map(({ id, name: called, issuer, not_after }) => ({ id, name: called, issuer, not_after })),
      total
    }
  }

  async find(certificateId: string): Promise<CertificateFacts | undefined> {
    const row = await this.parts.store.find(certificateId)
    return row === undefined
      ? undefined
      : {
          id: row.id,
          name: row.name,
          issuer: row.issuer,
          subjects: row.subjects,
          notBefore: row.not_before,
          notAfter: row.not_after
        }
  }

  async open(certificateIds: readonly string[]): Promise<readonly ServedCertificate[]> {
    const { store, secrets, log } = this.parts
    const rows = certificateIds.length === 0 ? [] : await store.sealed(certificateIds)
    return rows.flatMap(({ id, chain, private_key }) => {
      try {
        return {
          id,
          chainPem: secrets.open(chain, placeOf(id, 'chain')),
          keyPem: secrets.open(private_key, placeOf(id, 'private_key'))
        }
      } catch (error) {
        log.error({ err: error, certificateId: id }, 'a certificate cannot be decrypted; upload it again')
        return []
      }
    })
  }

  async #hostnames(ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const { uses, log } = this.parts
    const byCertificate = new Map<string, string[]>()
    for (const entry of ids.length === 0 ? [] : uses.entries()) {
      const told = await askOrLeaveOut(entry, async use => await use.hostnames(ids), {
        what: 'the hostnames that are served with certificates',
        takes: 'a map of lists of texts',
        take: value => (value instanceof Map ? (value as ReadonlyMap<string, readonly string[]>) : undefined),
        ms: useLimitMs,
        log
      })
      for (const [id, hostnames] of told ?? [])
        byCertificate.set(id, [...(byCertificate.get(id) ?? []), ...hostnames])
    }
    return byCertificate
  }
}

const placeOf = (row: string, column: 'chain' | 'private_key') => ({ table: 'certificate', column, row })

const isReference = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && stillReferenced.includes(error.code)

function inWords(hostnames: readonly string[]): string {
  if (hostnames.length === 0)
    return 'by domains that cannot be named while the plugin is off that keeps them; enable the plugin "domains" to see them'
  const more = hostnames.length - mostNamed
  const named = hostnames.slice(0, mostNamed).join(', ')
  return more > 0 ? `${named} and ${more} more` : named
}

const answer = (row: CertificateRow, domains: number): CertificateAnswer => ({
  id: row.id,
  name: row.name,
  issuer: row.issuer,
  subjects: [...row.subjects],
  not_before: row.not_before,
  not_after: row.not_after,
  domain_count: domains,
  created_at: row.created_at
})
