/** Where direct addresses are. */
export interface DirectSettings {
  /** What stands in a direct address: the host that a visitor asks for. */
  readonly host: string
  /** What is listened on. */
  readonly bind: string
  /** Ports are taken from here while one is free. */
  readonly firstPort: number
  readonly lastPort: number
  /** Past the range any free port will do; not where somebody forwards exactly these ports to this process. */
  readonly isRangeOnly: boolean
}

const defaults = { host: '127.0.0.2', firstPort: 20_000, lastPort: 24_999 } as const
/** Hosts by which a browser on this machine may ask for the platform, or which are no host to ask for. */
const platformHosts: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1', '0.0.0.0', '::'])

/**
 * Reads BUSBAR_DIRECT_HOST, BUSBAR_DIRECT_BIND and BUSBAR_DIRECT_PORTS (`20000-24999`); throws with the
 * remedy. Cookies ignore ports: an application must not have the platform's host name.
 */
export function readSettings(environment: (name: string) => string | undefined): DirectSettings {
  const host = (environment('BUSBAR_DIRECT_HOST') ?? defaults.host).toLowerCase().replace(/^\[(.*)\]$/, '$1')
  const bind = environment('BUSBAR_DIRECT_BIND')
  if (!/^[a-z0-9.:-]+$/.test(host))
    throw new Error(
      `BUSBAR_DIRECT_HOST is "${host}": give a host name or an address without a port, like 127.0.0.2`
    )
  if (platformHosts.has(host) || host === environment('HOST')?.toLowerCase()) {
    throw new Error(
      `BUSBAR_DIRECT_HOST is "${host}", by which a browser asks for the platform: cookies ignore ports, so an application there would be sent the platform's; give another address of this machine, like 127.0.0.2, or a name of its own, and set BUSBAR_DIRECT_BIND to what to listen on`
    )
  }
  return {
    host,
    bind: bind ?? host,
    ...readRange(environment('BUSBAR_DIRECT_PORTS')),
    isRangeOnly: bind !== undefined
  }
}

function readRange(range: string | undefined): Pick<DirectSettings, 'firstPort' | 'lastPort'> {
  if (range === undefined) return { firstPort: defaults.firstPort, lastPort: defaults.lastPort }
  const [first, last] = range.split('-').map(part => (/^\d{1,5}$/.test(part.trim()) ? Number(part) : NaN))
  if (first === undefined || last === undefined || !(first >= 1 && first <= last && last <= 65_535)) {
    throw new Error(
      `BUSBAR_DIRECT_PORTS is "${range}": give two ports from 1 to 65535, the lower first, like 20000-24999`
    )
  }
  return { firstPort: first, lastPort: last }
}

export const urlOf = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`
