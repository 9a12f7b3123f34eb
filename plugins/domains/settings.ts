import { isIP } from 'node:net'
import { fromEnvironment, maybe, object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  public_ip: maybe(
    fromEnvironment(
      'BUSBAR_PUBLIC_IP',
      Type.String({
        description: 'The address of this server that domains have to lead to; DNS is not checked without it'
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
  )
})
export type Settings = Static<typeof settings>

function parseServers(text: string): readonly string[] | undefined {
  const servers = text.split(',').map(server => server.trim())
  return servers.every(server => /^([\d.]+|\[[0-9a-f:]+\]|[0-9a-f:]+)(:\d{1,5})?$/i.test(server))
    ? servers
    : undefined
}
