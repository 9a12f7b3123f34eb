import type { Clock, Database, Events, Log } from 'busbar/sdk'
import { domainTlsChanged } from './api.js'
import type { CheckedDomain, DomainStore, TlsState } from './domain-store.js'
import type { HostLooks } from './host-looks.js'
import type { Routing } from './routing.js'

interface TlsChecksParts {
  readonly db: Database
  readonly store: DomainStore
  readonly routing: Routing
  readonly events: Events
  readonly clock: Clock
  readonly looks: HostLooks
  readonly log: Log
}

const staleMs = 55_000
const mostAtOnce = 500
const concurrent = 20
const ofPlatform =
  'The platform itself is asked by this name, so no application is served by it: use another one'

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
    const { db, store, routing, looks, events, clock, log } = this.parts
    try {
      const { hostname, ssl_mode: mode } = domain
      const isPlatforms = hostname === routing.platform()?.hostname
      const { state: seen, leadsHere } = await looks.look(hostname, mode, isPlatforms ? ofPlatform : null)
      const state: TlsState = {
        ...seen,
        verified_at: domain.verified_at ?? (leadsHere ? clock.now() : null)
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
