import { type AdminClient, addressText, Refused } from './admin-client.js'
import { type Caddy, CaddyFault } from './caddy.js'
import { type Json, type JsonObject, objectAt } from './config/json.js'
import { portRefusal } from './own-caddy.js'
import { ownershipOf } from './ownership.js'
import { isPortTaken } from './port-check.js'
import { hasRival } from './rival.js'

interface OutsideCaddyParts {
  readonly client: AdminClient
  readonly mark: string
  readonly bind: string
  readonly httpPort: number
  readonly httpsPort: number
  readonly answerer: { readonly host: string; readonly port: number }
}

/** A Caddy that somebody else runs, by its admin API. What it serves for others is never touched. */
export class OutsideCaddy implements Caddy {
  readonly client: AdminClient
  readonly validate = undefined

  constructor(private readonly parts: OutsideCaddyParts) {
    this.client = parts.client
  }

  async fault(): Promise<string | null> {
    const at = addressText(this.client.address)
    let loaded: unknown
    try {
      loaded = await this.client.config()
    } catch (error) {
      return `the admin API of Caddy at ${at} cannot be reached (${(error as Error).message}): start that Caddy, or correct CADDY_ADMIN_URL`
    }
    const { mark, answerer } = this.parts
    switch (ownershipOf(loaded, mark)) {
      case 'foreign':
        return `the Caddy at ${at} has a configuration that is not of this platform, which leaves it alone: start one without a configuration, and set CADDY_ADMIN_URL to its admin API`
      case 'ours':
        return (await hasRival(loaded, answerer)) ? 'another process of this installation drives it' : null
      default:
        return await this.#portFault()
    }
  }

  async adminBlock(): Promise<Json> {
    const loaded = objectAt(await this.client.config(), 'admin')
    if (loaded !== undefined) return loaded
    const { address } = this.client
    return {
      listen: address.kind === 'unix' ? `unix/${address.path}` : addressText(address).slice('http://'.length)
    }
  }

  async serve(config: JsonObject): Promise<void> {
    const fault = await this.fault()
    if (fault !== null) throw new CaddyFault(fault)
    await this.client.load(config).catch(error => {
      throw error instanceof Refused ? portRefusal(error, this.parts) : error
    })
  }

  async restart(): Promise<void> {
    throw new CaddyFault(
      `the Caddy at ${addressText(this.client.address)} is not run by the platform: restart it where it runs`
    )
  }

  async end(): Promise<void> {
    const loaded = await this.client.config().catch(() => null)
    if (ownershipOf(loaded, this.parts.mark) === 'ours')
      await this.client.load({ admin: await this.adminBlock() })
  }

  said(): readonly string[] {
    return []
  }

  /** As far as it can be known from here: a port that another machine or network has is not seen. */
  async #portFault(): Promise<string | null> {
    const { address } = this.client
    const isHere = address.kind === 'unix' || ['127.0.0.1', '::1', 'localhost'].includes(address.host)
    const { httpPort, httpsPort, bind } = this.parts
    for (const port of isHere ? [httpPort, httpsPort] : [])
      if (await isPortTaken(port, bind))
        return `another program listens on port ${port}: end it, or set BUSBAR_HTTP_PORT or BUSBAR_HTTPS_PORT`
    return null
  }
}
