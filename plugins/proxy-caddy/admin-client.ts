import { request } from 'node:http'
import type { JsonObject } from './config/json.js'
import type { AdminAddress } from './settings.js'

/** An answer of more is none of a configuration of ours. */
const longestAnswer = 64 * 1024 * 1024
const limitMs = 14_000

/** The admin API cannot be reached. */
class Unreachable extends Error {}

/** Caddy has understood, and refuses. */
export class Refused extends Error {}

interface UpstreamStatus {
  readonly address: string
  readonly num_requests: number
}

/** The admin API of one Caddy. */
export class AdminClient {
  constructor(readonly address: AdminAddress) {}

  /** What is loaded; null where nothing is. */
  async config(): Promise<unknown> {
    return JSON.parse(await this.#ask('GET', '/config/'))
  }

  /** Whose the configuration is; undefined where it has no mark. */
  async mark(): Promise<string | undefined> {
    const id: unknown = JSON.parse(await this.#ask('GET', '/config/@id'))
    return typeof id === 'string' ? id : undefined
  }

  /** Replaces all of it. Resolves when it is served; what Caddy refuses leaves the former one as it is. */
  async load(config: JsonObject): Promise<void> {
    await this.#ask('POST', '/load', JSON.stringify(config))
  }

  /** Where requests are under way now, by the addresses that Caddy dials. */
  async underWay(): Promise<ReadonlyMap<string, number>> {
    const all = JSON.parse(await this.#ask('GET', '/reverse_proxy/upstreams')) as readonly UpstreamStatus[]
    return new Map(all.map(({ address, num_requests }) => [address, num_requests]))
  }

  async stop(): Promise<void> {
    await this.#ask('POST', '/stop')
  }

  async #ask(method: string, path: string, body?: string): Promise<string> {
    const at =
      this.address.kind === 'unix'
        ? { socketPath: this.address.path, host: undefined }
        : { host: this.address.host, port: this.address.port }
    // Caddy takes requests over a socket whose Host is empty, as RFC 2616 has it.
    const host = this.address.kind === 'unix' ? '' : hostHeader(this.address)
    const origin = this.address.kind === 'unix' ? undefined : `http://${host}`
    return await new Promise<string>((resolve, reject) => {
      const outgoing = request(
        {
          ...at,
          method,
          path,
          agent: false,
          // Node takes an empty one for none.
          setHost: false,
          timeout: limitMs,
          headers: {
            Host: host,
            ...(origin !== undefined && { Origin: origin }),
            ...(body !== undefined && {
              'Content-Type': 'application/json',
              'Content-Length': Buffer.byteLength(body)
            })
          }
        },
        answer => {
          const chunks: Buffer[] = []
          let length = 0
          answer.on('data', (chunk: Buffer) => {
            length += chunk.length
            if (length > longestAnswer) outgoing.destroy(new Error('its answer is too long'))
            else chunks.push(chunk)
          })
          answer.on('error', error => reject(new Unreachable(error.message)))
          answer.on('end', () => {
            const text = Buffer.concat(chunks).toString('utf8')
            const status = answer.statusCode ?? 0
            if (status < 300) resolve(text)
            else reject(new Refused(errorIn(text) ?? `Caddy has answered ${status}`))
          })
        }
      )
      outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer within ${limitMs / 1000} s`)))
      outgoing.on('error', error => reject(new Unreachable(error.message)))
      outgoing.end(body)
    })
  }
}

const hostHeader = ({ host, port }: AdminAddress & { readonly kind: 'tcp' }): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`

/** As people write it. */
export const addressText = (address: AdminAddress): string =>
  address.kind === 'unix' ? `unix://${address.path}` : `http://${hostHeader(address)}`

function errorIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    return typeof error === 'string' ? error.slice(0, 2000) : undefined
  } catch {
    return undefined
  }
}
