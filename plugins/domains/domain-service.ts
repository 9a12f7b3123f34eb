import { randomUUID } from 'node:crypto'
import type { CertificateStore } from 'busbar/api/certificates'
import {
  askNow,
  type Clock,
  type Contributions,
  type Database,
  isUuid,
  type Jobs,
  type Log,
  type Page,
  pageOf,
  type Reach,
  type Rows,
  type Tx
} from 'busbar/sdk'
import { addressesOf } from './addresses.js'
import type { ProxyAbility } from './api.js'
import { checkCoverage, readRules } from './domain-rules.js'
import type {
  DomainRow,
  DomainRules,
  DomainStore,
  FeatureRow,
  Place,
  TlsOverviewRow,
  TlsState
} from './domain-store.js'
import { isPlatformHost, isWildcard, type PlatformNames } from './hostname.js'
import { recheckJob } from './jobs.js'
import { problems } from './problems.js'
import { isFeatureType, readFeature } from './route-features.js'
import type { Routing } from './routing.js'
import type { RoutingStore } from './routing-store.js'
import { abilitiesFor, inWords } from './routing-table.js'
import type {
  AddressAnswer,
  DomainAnswer,
  DomainBody,
  DomainWithFeatures,
  FeatureAnswer,
  FeatureBody,
  TlsOverview
} from './schemas.js'

interface DomainServiceParts {
  readonly db: Database
  readonly store: DomainStore
  readonly routingStore: RoutingStore
  readonly routing: Routing
  readonly certificates: CertificateStore
  readonly reserved: Contributions<{ reserves(hostname: string): string | null }>
  readonly names: PlatformNames
  readonly jobs: Jobs
  readonly clock: Clock
  readonly log: Log
}

const mostDomains = 1000

export class DomainService {
  constructor(private readonly parts: DomainServiceParts) {}

  async list(place: Place, page: Page): Promise<Rows<DomainWithFeatures>> {
    const { rows, total } = await this.parts.store.list(place, page)
    const features = await this.parts.store.features(rows.map(({ id }) => id))
    return {
      rows: rows.map(row =>
        withFeatures(
          row,
          features.filter(({ domain_id }) => domain_id === row.id)
        )
      ),
      total
    }
  }

  async find(place: Place, domainId: string): Promise<DomainWithFeatures> {
    const row = await this.#existing(place, domainId)
    return withFeatures(row, await this.parts.store.features([row.id]))
  }

  async overview(reach: Reach, page: Page): Promise<Rows<TlsOverview>> {
    const { rows, total } = await this.parts.store.overview(reach, page)
    return { rows: rows.map(overviewAnswer), total }
  }

  async addresses(applicationId: string, page: Page): Promise<Rows<AddressAnswer>> {
    const { routing, routingStore } = this.parts
    const driver = routing.driver()
    if (driver === undefined) return pageOf(page, [])
    const [own, domains] = await Promise.all([
      routingStore.ownHostOf(applicationId),
      routingStore.hostnamesOf(applicationId)
    ])
    return pageOf(page, addressesOf({ own, domains, ports: driver.ports() }))
  }

  async add(place: Place, body: DomainBody): Promise<DomainAnswer> {
    const { db, store, clock, routing } = this.parts
    const rules = await this.#rules(body, undefined)
    const now = clock.now()
    const row: DomainRow = {
      id: randomUUID(),
      application_id: place.applicationId,
      ...rules,
      ...unchecked(rules),
      created_at: now
    }
    await db.transaction(async tx => {
      await store.holdNames(tx)
      await this.#checkHolders(place, rules, { self: null, leads: null }, tx)
      if ((await store.count(place.applicationId, tx)) >= mostDomains)
        throw problems.tooMany({ limit: mostDomains })
      await store.insert(row, tx)
      await this.#enqueueCheck(row.id, tx)
      await routing.changed(tx)
    })
    await this.#serve(place)
    return answer(row)
  }

  async update(place: Place, domainId: string, body: DomainBody): Promise<DomainAnswer> {
    const { db, store, routing } = this.parts
    const before = await this.#existing(place, domainId)
    const rules = await this.#rules(body, before)
    const isSame =
      before.hostname === rules.hostname &&
      before.ssl_mode === rules.ssl_mode &&
      before.certificate_id === rules.certificate_id
    const row = await db.transaction(async tx => {
      await store.holdNames(tx)
      const held = await store.find(place, domainId, tx)
      if (held === undefined) throw problems.notFound({ domainId })
      const isLed = held.hostname === rules.hostname
      await this.#checkHolders(
        place,
        rules,
        { self: domainId, leads: isLed ? place.applicationId : null },
        tx
      )
      const changed = await store.update(
        domainId,
        { ...rules, ...(isSame ? stateOf(held) : unchecked(rules)) },
        tx
      )
      const others =
        isLed && (held.ssl_mode !== rules.ssl_mode || held.certificate_id !== rules.certificate_id)
          ? await store.followTls({ ...held, ...rules }, unchecked(rules), tx)
          : []
      for (const id of [domainId, ...others]) await this.#enqueueCheck(id, tx)
      await routing.changed(tx)
      return changed
    })
    if (row === undefined) throw problems.notFound({ domainId })
    await this.#serve(place)
    return answer(row)
  }

  async remove(place: Place, domainId: string): Promise<{ status: string }> {
    const { db, store, routing } = this.parts
    await db.transaction(async tx => {
      if (!(await store.remove(place, domainId, tx))) throw problems.notFound({ domainId })
      await routing.changed(tx)
    })
    await routing.refresh()
    return { status: 'deleted' }
  }

  async recheck(place: Place, domainId: string): Promise<void> {
    await this.#existing(place, domainId)
    await this.parts.db.transaction(async tx => await this.#enqueueCheck(domainId, tx))
  }

  async features(place: Place, domainId: string, page: Page): Promise<Rows<FeatureAnswer>> {
    await this.#existing(place, domainId)
    return pageOf(page, (await this.parts.store.features([domainId])).map(featureAnswer))
  }

  async putFeature(place: Place, domainId: string, body: FeatureBody): Promise<FeatureAnswer> {
    const { db, store, clock, routing } = this.parts
    await this.#existing(place, domainId)
    const { feature_type: type } = body
    if (!isFeatureType(type)) throw problems.badFeatureType()
    const now = clock.now()
    const row = await db.transaction(async tx => {
      await store.holdNames(tx)
      if ((await store.find(place, domainId, tx)) === undefined) throw problems.notFound({ domainId })
      const config = withStoredHash(body.config, (await store.feature(domainId, type, tx))?.config)
      const read = readFeature(type, config)
      if ('fault' in read) throw problems.badFeature({ reason: read.fault })
      this.#demand([{ ability: type, field: 'feature_type' }])
      const kept = await store.upsertFeature(
        {
          id: randomUUID(),
          domain_id: domainId,
          feature_type: type,
          config,
          enabled: body.enabled ?? true,
          created_at: now,
          updated_at: now
        },
        tx
      )
      await routing.changed(tx)
      return kept
    })
    await routing.refresh()
    return featureAnswer(row)
  }

  async removeFeature(place: Place, domainId: string, featureId: string): Promise<{ status: string }> {
    const { store, routing } = this.parts
    await this.#existing(place, domainId)
    if (!(await store.removeFeature(domainId, featureId))) throw problems.featureNotFound({ featureId })
    await routing.changed()
    await routing.refresh()
    return { status: 'deleted' }
  }

  async removeOfApplication(applicationId: string): Promise<void> {
    const { store, routing } = this.parts
    await store.removeOfApplication(applicationId)
    await routing.retargeted(applicationId)
    await routing.changed()
  }

  /** For a refusal to delete a certificate. */
  async hostnamesWith(certificateIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const byCertificate = new Map<string, string[]>()
    const platform = this.parts.routing.platform()
    if (platform?.tls.mode === 'custom' && certificateIds.includes(platform.tls.certificateId))
      byCertificate.set(platform.tls.certificateId, [platform.hostname])
    for (const { certificate_id: id, hostname } of await this.parts.store.usesOf(
      certificateIds.filter(isUuid)
    )) {
      const known = byCertificate.get(id)
      if (known === undefined) byCertificate.set(id, [hostname])
      else known.push(hostname)
    }
    return byCertificate
  }

  async #existing(place: Place, domainId: string): Promise<DomainRow> {
    const row = await this.parts.store.find(place, domainId)
    if (row === undefined) throw problems.notFound({ domainId })
    return row
  }

  async #rules(body: DomainBody, before: DomainRow | undefined): Promise<DomainRules> {
    const defaultMode = this.parts.routing.driver()?.abilities.includes('acme') ? 'automatic' : 'off'
    const rules = readRules(body, { before, defaultMode })
    this.#checkReserved(rules.hostname)
    this.#demand(
      abilitiesFor({
        tls: { mode: rules.ssl_mode, certificateId: rules.certificate_id ?? '' },
        features: [],
        handlers: rules.advanced_config ?? []
      })
    )
    if (rules.advanced_config !== null) {
      const reason = await this.parts.routing.driver()?.checkHandlers?.(rules.advanced_config)
      if (typeof reason === 'string') throw problems.badAdvanced({ reason })
    }
    if (rules.certificate_id !== null)
      checkCoverage(rules.hostname, await this.parts.certificates.find(rules.certificate_id))
    return rules
  }

  /**
   * What the driver that is on cannot do is refused when it is saved, and not found out by a visitor. While none is on it is
   * kept, and one that comes and cannot do it tells so.
   */
  #demand(wanted: ReadonlyArray<{ readonly ability: ProxyAbility; readonly field: string }>): void {
    const driver = this.parts.routing.driver()
    if (driver === undefined) return
    for (const { ability, field } of wanted)
      if (!driver.abilities.includes(ability))
        throw problems.unable(
          { field, driver: driver.name, what: inWords(ability), help: driver.lackRemedy },
          { field }
        )
  }

  #checkReserved(hostname: string): void {
    const { names, reserved, log } = this.parts
    if (isPlatformHost(hostname, names))
      throw problems.reserved({ hostname, what: 'a host by which browsers ask for the platform itself' })
    for (const entry of reserved.entries()) {
      const told = askNow(entry, value => ({ what: value.reserves(hostname) }), {
        what: 'the reserved hostnames',
        takes: 'a text or null',
        take: answered => (answered as { readonly what: unknown }) ?? undefined,
        log
      })
      if (typeof told?.what === 'string') throw problems.reserved({ hostname, what: told.what })
    }
  }

  /**
   * What another project has is refused without a word of whose it is; a wildcard takes no name of others, nor they of it.
   * `leads`: the application whose other paths of the hostname follow what is changed of TLS.
   */
  async #checkHolders(
    { projectId }: Place,
    { hostname, path, ssl_mode, certificate_id }: DomainRules,
    { self, leads }: { readonly self: string | null; readonly leads: string | null },
    tx: Tx
  ): Promise<void> {
    const above = hostname.includes('.') ? `*${hostname.slice(hostname.indexOf('.'))}` : hostname
    const holders = await this.parts.store.holders(
      { names: [hostname, above], below: isWildcard(hostname) ? hostname.slice(1) : null },
      tx
    )
    const others = holders.filter(({ domain_id }) => domain_id === null || domain_id !== self)
    if (others.some(holder => holder.project_id !== projectId)) throw problems.taken({ hostname })
    for (const holder of others.filter(one => one.hostname === hostname)) {
      if (holder.path === null || holder.path === path) throw problems.takenHere({ hostname, path })
      if (holder.application_id === leads) continue
      if (holder.ssl_mode !== ssl_mode || holder.certificate_id !== certificate_id)
        throw problems.mixedTls({ hostname, mode: holder.ssl_mode ?? 'off' })
    }
  }

  async #enqueueCheck(domainId: string, tx: Tx): Promise<void> {
    await this.parts.jobs.enqueue(recheckJob, { domainId }, { key: domainId }, tx)
  }

  /** Served before it is answered; a port that was not asked for before is looked up. */
  async #serve({ applicationId }: Place): Promise<void> {
    const { routing } = this.parts
    await routing.retargeted(applicationId)
    await routing.refresh()
  }
}

const unchecked = ({ ssl_mode }: Pick<DomainRules, 'ssl_mode'>): TlsState => ({
  verified_at: null,
  tls_status: ssl_mode === 'off' ? 'disabled' : 'unknown',
  tls_issuer: null,
  tls_not_after: null,
  tls_last_checked_at: null,
  tls_error: null,
  tls_advisory: null
})

const stateOf = (row: DomainRow): TlsState => ({
  verified_at: row.verified_at,
  tls_status: row.tls_status,
  tls_issuer: row.tls_issuer,
  tls_not_after: row.tls_not_after,
  tls_last_checked_at: row.tls_last_checked_at,
  tls_error: row.tls_error,
  tls_advisory: row.tls_advisory
})

/** The hash is in no answer, so a client that sends back what it was shown means the one that is there. */
function withStoredHash(
  config: unknown,
  stored: Readonly<Record<string, unknown>> | undefined
): Readonly<Record<string, unknown>> {
  const given = config as Readonly<Record<string, unknown>>
  const isKept =
    stored?.hashed_password !== undefined &&
    given.hashed_password === undefined &&
    given.username === stored.username
  return isKept ? { ...given, hashed_password: stored.hashed_password } : given
}

function featureAnswer({ config, ...row }: FeatureRow): FeatureAnswer {
  const { hashed_password: _, ...shown } = config
  return { ...row, config: shown }
}

const answer = (row: DomainRow): DomainAnswer => ({
  ...row,
  ssl_enabled: row.ssl_mode !== 'off',
  caddy_config_id: null,
  ssl_credentials_encrypted: null
})

/** As the contract has it: texts are empty where there is nothing to say. */
const overviewAnswer = (row: TlsOverviewRow): TlsOverview => ({
  ...row,
  tls_issuer: row.tls_issuer ?? '',
  tls_error: row.tls_error ?? '',
  tls_advisory: row.tls_advisory ?? '',
  certificate_name: row.certificate_name ?? ''
})

const withFeatures = (row: DomainRow, features: readonly FeatureRow[]): DomainWithFeatures => ({
  ...answer(row),
  route_features: features.map(featureAnswer)
})
