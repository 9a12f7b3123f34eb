import { isIP } from 'node:net'
import { fromEnvironment, isUuid, maybe, object, oneOf, type Static, Type } from 'busbar/sdk'
import { isWildcard, readHostname } from './hostname.js'

const sslModes = ['automatic', 'custom', 'off'] as const

export const settings = object({
  public_ip: maybe(
    fromEnvironment(
      'BUSBAR_PUBLIC_IP',
      Type.String({
        description:
          'The address of this server that domains have to lead to; unless set, the one that it reaches the internet from, where that is public'
      }),
      { takes: 'an address, like 203.0.113.7', parse: text => (isIP(text) === 0 ? undefined : text) }
    )
  ),
  dns_servers: maybe(
    fromEnvironment(
      'BUSBAR_DNS_SERVERS',
      Type.String({
        description:
          'The name servers that domains are looked up at, separated by commas; those of the machine unless set'
      }),
      { takes: 'addresses, with a port where it is not 53: 1.1.1.1,127.0.0.1:5353', parse: parseServers }
    )
  ),
  dashboard_domain: maybe(
    fromEnvironment(
      'DASHBOARD_DOMAIN',
      Type.String({ description: 'The hostname by which the proxy serves the platform itself' }),
      { takes: 'a hostname, like busbar.example.com', parse: parseDashboard }
    )
  ),
  dashboard_ssl_mode: maybe(
    fromEnvironment(
      'DASHBOARD_SSL_MODE',
      Type.Unsafe<(typeof sslModes)[number]>({
        ...oneOf(sslModes),
        description:
          'How that is served; automatic unless set, and off where the proxy has no certificates issued'
      })
    )
  ),
  dashboard_certificate_id: maybe(
    fromEnvironment(
      'DASHBOARD_CERTIFICATE_ID',
      Type.String({ description: 'The uploaded certificate of custom' }),
      { takes: 'the id of a certificate', parse: text => (isUuid(text) ? text : undefined) }
    )
  ),
  dashboard_upstream: maybe(
    fromEnvironment(
      'DASHBOARD_UPSTREAM',
      Type.String({
        description:
          'Where the proxy reaches the platform; where it listens, unless set: for a proxy that runs elsewhere'
      }),
      { takes: 'a host and a port, like busbar:8080', parse: parseUpstream }
    )
  )
})
export type Settings = Static<typeof settings>

function parseServers(text: string): readonly string[] | undefined {
  const servers = text.split(',').map(server => server.trim())
  return servers.every(server => /^([\d.]+|\[[0-9a-f:]+\]|[0-9a-f:]+)(:\d{1,5})?$/i.test(server))
    ? servers
    : undefined
}

function parseDashboard(text: string): string | undefined {
  const hostname = readHostname(text)
  return typeof hostname === 'string' && !isWildcard(hostname) ? hostname : undefined
}

function parseUpstream(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, host = '', port = ''] = /^\[?([\w.:-]{1,253}?)\]?:(\d{1,5})$/.exec(text) ?? []
  return host !== '' && Number(port) >= 1 && Number(port) <= 65_535 ? { host, port: Number(port) } : undefined
}
