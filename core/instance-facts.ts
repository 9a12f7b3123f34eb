import { mkdir } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Instance } from 'busbar/sdk'
import { isLoopback, type Settings } from './config/environment.js'
import { ownProxyHeader } from './http/own-proxy.js'
import { release } from './release.js'

interface FactsParts {
  readonly settings: Settings
  /** Where the platform's own server listens; null before it does. */
  readonly address: () => AddressInfo | string | null
  /** What the platform's own proxies show; see `core/http/own-proxy.ts`. */
  readonly proxySecret: string
}

/** What a plugin is told of the installation. */
export function instanceFacts(id: string, { settings, address, proxySecret }: FactsParts): Instance {
  const path = join(settings.directory, 'data', id)
  return Object.freeze({
    version: release,
    loopbackOnly: isLoopback(settings.host),
    host: settings.host,
    publicUrl: settings.publicUrl,
    behindProxy: settings.behindProxy,
    trustedProxies: settings.trustedRanges,
    ownProxy: Object.freeze({ header: ownProxyHeader, value: proxySecret }),
    listening: () => {
      const at = address()
      return at === null || typeof at === 'string' ? null : { host: dialable(settings.host), port: at.port }
    },
    directory: async () => {
      await mkdir(path, { recursive: true, mode: 0o700 })
      return path
    }
  })
}

/** Who listens on every address is reached by that of loopback. */
const dialable = (host: string): string => (host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host)
