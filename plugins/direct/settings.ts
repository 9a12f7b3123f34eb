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
  /** Past the range any free port will do; not where somebody forwards exactly these ports to this process. */
  readonly isRangeOnly: boolean
}

const defaults = { host: '127.0.0.2', firstPort: 20_000, lastPort: 24_999 } as const

/**
 * Reads BUSBAR_DIRECT_HOST, BUSBAR_DIRECT_BIND and BUSBAR_DIRECT_PORTS (`20000-24999`); throws with the
 * remedy.
 */
export function readSettings(environment: (name: string) => string | undefined): DirectSettings {
  const host = bareHost(environment('BUSBAR_DIRECT_HOST') ?? defaults.host)
  checkHost(host, environment)
  const bind = environment('BUSBAR_DIRECT_BIND')
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
