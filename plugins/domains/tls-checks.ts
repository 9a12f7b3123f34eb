import type { Clock, Database, Events, Log } from 'busbar/sdk'
import { domainTlsChanged, type HostReport } from './api.js'
import { dnsVerdict, lookUp } from './dns-check.js'
import type { CheckedDomain, DomainStore, TlsState } from './domain-store.js'
import type { Routing } from './routing.js'
import type { Settings } from './settings.js'
import { servedLeaf } from './tls-probe.js'
import { tlsStateOf } from './tls-status.js'

interface TlsChecksParts {
  readonly db: Database
  readonly store: DomainStore
  readonly routing: Routing
  readonly events: Events
  readonly clock: Clock
  readonly settings: Settings
  readonly log: Log
}

const staleMs = 55_000
const mostAtOnce = 500
const concurrent = 20
const notServed: HostReport = {
  fault:
    'No proxy driver is on, so nothing is served: enable the plugin "proxy-forwarder", or one that brings a driver',
  tlsAt: null,
  tlsFault: null
}

/** Looks at what is really served, once a minute and when somebody asks. */
export class TlsChecks {
  constructor(private readonly parts: TlsChecksParts) {}

  async checkStale(signal: AbortSignal): Promise<void> {
    const { store, clock } = this.parts
    const due = await store.mostStale(new Date(clock.now().getTime() - staleMs), mostAtOnce)
    for (let at = 0; at < due.length && !signal.aborted; at += concurrent)
      await Promise.all(due.slice(at, at + concurrent).map(async domain => await this.#check(domain)))
  }

  async check(domainId: string): Promise<void> {
    // What was asked for a moment ago is to be served before it is looked at.
    await this.parts.routing.refresh()
    const domain = await this.parts.store.checked(domainId)
    if (domain !== undefined) await this.#check(domain)
  }

  async #check(domain: CheckedDomain): Promise<void> {
    const { db, store, routing, events, clock, settings, log } = this.parts
    try {
      const { hostname, ssl_mode: mode } = domain
      const report = (await routing.driver()?.report(hostname)) ?? notServed
      const expected = hostname.endsWith('.localhost') ? undefined : settings.public_ip
      const [dns, leaf] = await Promise.all([
        expected === undefined
          ? undefined
          : lookUp(hostname, settings.dns_servers).then(answer => dnsVerdict(hostname, answer, expected)),
        mode === 'off' || report.tlsAt === null ? undefined : servedLeaf(report.tlsAt, hostname)
      ])
      const now = clock.now()
      const state: TlsState = {
        ...tlsStateOf({ mode, report, leaf, dns, now }),
        verified_at: domain.verified_at ?? (dns?.leadsHere === true ? now : null)
      }
      await db.transaction(async tx => {
        if (!(await store.recordCheck(domain, state, tx)) || state.tls_status === domain.tls_status) return
        await events.emit(
          domainTlsChanged,
          {
            domainId: domain.id,
            applicationId: domain.application_id,
            hostname,
            status: state.tls_status,
            reason: state.tls_error,
            notAfter: state.tls_not_after?.toISOString() ?? null
          },
          tx
        )
      })
    } catch (error) {
      log.warn({ err: error, hostname: domain.hostname }, 'a domain could not be checked')
    }
  }
}
