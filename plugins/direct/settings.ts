import { fromEnvironment, type Instance, maybe, object, type Static, Type } from 'busbar/sdk'
import { bareHost, checkHost } from './hosts.js'

/** Where direct addresses are. */
export interface DirectSettings {
  /** What stands in a direct address: the host that a visitor asks for, or the pattern of these hosts. */
  readonly host: string
  /** What is listened on. */
  readonly bind: string
  /** Ports are taken from here while one is free. */
  readonly firstPort: number
  readonly lastPort: number
  /** Past the range any free port will do; not where exactly these ports are forwarded to this process. */
  readonly isRangeOnly: boolean
}

export const settings = object({
  host: fromEnvironment(
    'BUSBAR_DIRECT_HOST',
    Type.String({
      default: '127.0.0.2',
      description:
        'The host in direct addresses, or a pattern that gives each application its own: *.apps.example.com'
    })
  ),
  bind: maybe(
    fromEnvironment(
      'BUSBAR_DIRECT_BIND',
      Type.String({ description: 'The address to listen on; the host unless set; needed with a pattern' })
    )
  ),
  ports: fromEnvironment(
    'BUSBAR_DIRECT_PORTS',
    Type.String({ default: '20000-24999', description: 'The ports of direct addresses' }),
    { takes: 'two ports from 1 to 65535, the lower first, like 20000-24999', parse: parsePorts }
  ),
  dashboard_domain: maybe(
    fromEnvironment(
      'DASHBOARD_DOMAIN',
      Type.String({
        description: 'The hostname by which a proxy serves the platform: no direct address has it'
      })
    )
  )
})
export type Settings = Static<typeof settings>

interface PortRange {
  readonly first: number
  readonly last: number
}

function parsePorts(range: string): PortRange | undefined {
  const [first, last] = range.split('-').map(part => (/^\d{1,5}$/.test(part.trim()) ? Number(part) : NaN))
  return first !== undefined && last !== undefined && first >= 1 && first <= last && last <= 65_535
    ? { first, last }
    : undefined
}

/** Throws when the host cannot be one of applications beside this platform. */
export function directSettingsOf(
  { host: given, bind, ports, dashboard_domain: dashboard }: Settings,
  platform: Pick<Instance, 'host' | 'publicUrl'>
): DirectSettings {
  const host = bareHost(given)
  checkHost(host, bind, { ...platform, dashboard: dashboard?.trim().replace(/\.$/, '') })
  return {
    host,
    bind: bind ?? host,
    firstPort: ports.first,
    lastPort: ports.last,
    isRangeOnly: bind !== undefined
  }
}

export const urlOf = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`
