/** Where direct addresses are. */
export interface DirectSettings {
  readonly host: string
  /** Ports are taken from here while one is free, then wherever the system has one. */
  readonly firstPort: number
  readonly lastPort: number
}

const defaults: DirectSettings = Object.freeze({ host: '127.0.0.2', firstPort: 20_000, lastPort: 24_999 })

/** Reads BUSBAR_DIRECT_HOST and BUSBAR_DIRECT_PORTS (`20000-24999`); throws with the remedy. */
export function readSettings (environment: (name: string) => string | undefined): DirectSettings {
  const host = environment('BUSBAR_DIRECT_HOST') ?? defaults.host
  const range = environment('BUSBAR_DIRECT_PORTS')
  if (range === undefined) return { ...defaults, host }
  const [first, last] = range.split('-').map(part => /^\d{1,5}$/.test(part.trim()) ? Number(part) : NaN)
  if (first === undefined || last === undefined || !(first >= 1 && first <= last && last <= 65_535)) {
    throw new Error(`BUSBAR_DIRECT_PORTS is "${range}": give two ports from 1 to 65535, the lower first, like 20000-24999`)
  }
  return { host, firstPort: first, lastPort: last }
}

/** The URL of a port; an address that means "every interface" is no address to visit. */
export function urlOf (host: string, port: number): string {
  const visited = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${visited.includes(':') ? `[${visited}]` : visited}:${port}`
}
