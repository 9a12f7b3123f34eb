import type { Clock } from 'busbar/sdk'
import type { HostReport } from './api.js'
import { type DnsVerdict, dnsVerdict, lookUp } from './dns-check.js'
import type { SslMode, TlsState } from './domain-store.js'
import type { Routing } from './routing.js'
import type { ServerAddresses } from './server-address.js'
import type { Settings } from './settings.js'
import { servedLeaf } from './tls-probe.js'
import { tlsStateOf } from './tls-status.js'

interface HostLooksParts {
  readonly routing: Routing
  readonly addresses: ServerAddresses
  readonly settings: Settings
  readonly clock: Pick<Clock, 'now'>
}

const notServed: HostReport = {
  fault:
    'No proxy driver is on, so nothing is served: enable the plugin "proxy-forwarder", or one that brings a driver',
  tlsAt: null,
  tlsFault: null
}

/** What is really served for a hostname, and where its name leads. */
export class HostLooks {
  constructor(private readonly parts: HostLooksParts) {}

  async look(
    hostname: string,
    mode: SslMode,
    /** Why it is not served whatever the proxy says. */
    fault: string | null = null
  ): Promise<{ readonly state: Omit<TlsState, 'verified_at'>; readonly leadsHere: boolean }> {
    const { routing, clock } = this.parts
    const told = (await routing.driver()?.report(hostname)) ?? notServed
    const report = fault === null ? told : { ...told, fault }
    const [dns, leaf] = await Promise.all([
      this.#dns(hostname),
      mode === 'off' || report.tlsAt === null ? undefined : servedLeaf(report.tlsAt, hostname)
    ])
    return {
      state: tlsStateOf({ mode, report, leaf, dns, now: clock.now() }),
      leadsHere: dns?.leadsHere === true
    }
  }

  async #dns(hostname: string): Promise<DnsVerdict | undefined> {
    const { addresses, settings } = this.parts
    if (hostname.endsWith('.localhost')) return undefined
    const { effective: expected } = await addresses.read()
    if (expected === '') return undefined
    return dnsVerdict(hostname, await lookUp(hostname, settings.dns_servers), expected)
  }
}
