import { randomBytes } from 'node:crypto'
import { type Clock, type Cookie, cookieNames, knownDevicePrefix, type Secrets } from 'busbar/sdk'
import type { Client } from '../api.js'
import type { Origin } from '../passwords/lock-out.js'

const lifetimeMs = 365 * 24 * 3_600_000
const place = (account: string) => ({ table: 'device', column: 'cookie', row: account })

/**
 * Browsers that have signed in before. Each keeps a cookie that says for which account, sealed by the platform and
 * nowhere stored: it makes no session, it only has the failures of others not counted against it.
 */
export class KnownDevices {
  constructor(
    private readonly secrets: Secrets,
    private readonly clock: Clock
  ) {}

  /** Where an attempt on the account comes from. */
  origin(account: string, client: Client): Origin {
    return { ip: client.ip, device: this.#recognise(account, client) }
  }

  isKnown(account: string, client: Client): boolean {
    return this.#recognise(account, client) !== undefined
  }

  /** For a client that has just signed in: what makes it known; none when it is. */
  cookies(account: string, client: Client): readonly Cookie[] {
    if (this.isKnown(account, client)) return []
    const sealed = this.secrets.seal(
      `${randomBytes(16).toString('base64url')} ${this.clock.now().getTime()}`,
      place(account)
    )
    return [
      {
        name: cookieNames.device,
        value: knownDevicePrefix + sealed,
        path: '/api/auth',
        httpOnly: true,
        maxAgeSeconds: lifetimeMs / 1000
      }
    ]
  }

  #recognise(account: string, { cookies }: Client): string | undefined {
    const value = cookieValue(cookies ?? '', cookieNames.device)
    if (value === undefined || !value.startsWith(knownDevicePrefix)) return undefined
    try {
      const [id, since] = this.secrets.open(value.slice(knownDevicePrefix.length), place(account)).split(' ')
      return this.clock.now().getTime() - Number(since) < lifetimeMs ? id : undefined
    } catch {
      // Of another account, of a key that is gone, or made up.
      return undefined
    }
  }
}

function cookieValue(header: string, name: string): string | undefined {
  for (const pair of header.split(';')) {
    const separator = pair.indexOf('=')
    if (separator > 0 && pair.slice(0, separator).trim() === name) return pair.slice(separator + 1).trim()
  }
  return undefined
}
