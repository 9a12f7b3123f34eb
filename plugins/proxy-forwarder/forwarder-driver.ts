import type { IncomingMessage } from 'node:http'
import type { TrafficSwitch } from 'busbar/api/deployments'
import {
  type ApplicationTargets,
  type HostReport,
  type HostTable,
  hostTableOf,
  isBelow,
  type PlatformRoute,
  type ProxyAbility,
  type ProxyDriver,
  type ProxyRoute,
  pathOf,
  type RoutingTable,
  ruledPath
} from 'busbar/api/domains'
import { type Clock, type Instance, plainAddress } from 'busbar/sdk'
import {
  type AddressTest,
  addressesIn,
  BcryptThread,
  createSwitchable,
  type Decision,
  defaultLimits,
  type ForwardedOrigin,
  type ForwardingServer,
  type Head,
  hostnameOf,
  type OwnAnswer,
  openForwardingServer,
  originOf,
  PasswordChecks
} from 'busbar/sdk/http1'
import { type CompiledPlatform, compilePlatform } from './compiled-platform.js'
import { type CompiledRoute, compileRoute, isConfined, lackOf } from './compiled-route.js'
import { Containers } from './containers.js'
import { climbs } from './forwarded-path.js'
import { RateLimits } from './rate-limits.js'
import type { RequestNotes } from './request-notes.js'
import type { Settings } from './settings.js'

interface ForwarderParts {
  readonly notes: RequestNotes
  readonly settings: Settings
  readonly clock: Pick<Clock, 'elapsed'>
  readonly instance: Pick<Instance, 'ownProxy'>
}

const caps = { inAll: 8192, perAddress: 500 }
const nobody: AddressTest = () => false
const unknownHost: OwnAnswer = { status: 404, sentence: 'Nothing is served under this name here.' }
const unknownPath: OwnAnswer = { status: 404, sentence: 'Nothing is served under this path here.' }

/** Hostnames over plain HTTP, on one port of this process. */
export class ForwarderDriver implements ProxyDriver {
  readonly name = 'the built-in forwarder'
  readonly abilities: readonly ProxyAbility[] = [
    'basic_auth',
    'headers',
    'ip_allowlist',
    'redirect',
    'rate_limit'
  ]
  readonly lackRemedy =
    'leave it out (of TLS: ssl_mode off), or have the platform serve domains by a proxy that can, such as Caddy, by a plugin that drives it'
  readonly fallback = true

  readonly #containers = new Containers()
  #hosts: HostTable = hostTableOf({ routes: [] })
  /** By the id of a route. */
  #compiled = new Map<string, CompiledRoute>()
  #platform: CompiledPlatform | undefined
  readonly #platformTarget = createSwitchable(null)
  #isTrusted: AddressTest = nobody
  readonly #rates: RateLimits
  readonly #passwords: PasswordChecks
  readonly #bcrypt = new BcryptThread()
  #server: ForwardingServer | undefined
  #fault: string | null = null
  #isStopped = false

  constructor(private readonly parts: ForwarderParts) {
    const now = (): number => parts.clock.elapsed()
    this.#rates = new RateLimits(now)
    this.#passwords = new PasswordChecks(now, (password, hash) => this.#bcrypt.verify(password, hash))
  }

  /** Why nothing is served; null where it is, or has not been asked for. */
  fault(): string | null {
    return this.#fault
  }

  async load(table: RoutingTable): Promise<void> {
    const context = {
      abilities: this.abilities,
      limits: defaultLimits,
      rates: this.#rates,
      passwords: this.#passwords
    }
    const compiled = new Map(
      table.routes.map(route => [route.id, compileRoute(route, this.#containers.for(route), context)])
    )
    // All in one turn: a request meets the former table, or this one.
    this.#hosts = hostTableOf(table)
    this.#compiled = compiled
    this.#platform = this.#compilePlatform(table.platform)
    this.#isTrusted = addressesIn(table.trustedProxies) ?? nobody
    this.#containers.keepOnly(table.routes)
    this.#rates.keepOnly(new Set(compiled.keys()))
    await this.#listen()
  }

  async retarget(applicationId: string, targets: ApplicationTargets | null): Promise<void> {
    this.#containers.retarget(applicationId, targets)
  }

  async switchTo(applicationId: string, targets: ApplicationTargets): Promise<TrafficSwitch | null> {
    return this.#containers.switchTo(applicationId, targets)
  }

  /** For good: a load that is under way opens nothing any more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.release()
    await this.#bcrypt.close()
  }

  async release(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    await server?.close(() => this.#containers.open() + (this.#platformTarget.current()?.open ?? 0))
  }

  async report(hostname: string): Promise<HostReport> {
    return { fault: this.#fault ?? this.#faultOf(hostname), tlsAt: null, tlsFault: null }
  }

  ports(): { readonly http: number | null; readonly https: null } {
    return { http: this.#server?.port ?? null, https: null }
  }

  async #listen(): Promise<void> {
    if (this.#server !== undefined || this.#isStopped) return
    const { port, bind } = this.parts.settings
    try {
      const server = await openForwardingServer(
        { host: bind, port },
        {
          limits: defaultLimits,
          observe: (head, request) =>
            this.parts.notes.begin(head, request, {
              address: this.#originOf(request).address,
              applicationId: this.#routeOf(head)?.applicationId ?? null
            }),
          decide: (head, request) => this.#decide(head, request)
        },
        // A proxy in front stands for many clients.
        { ...caps, isExempt: address => this.#isTrusted(address) }
      )
      // It may have been stopped meanwhile.
      if (this.#isStopped) return await server.close(() => 0)
      this.#server = server
      this.#fault = null
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      this.#fault = `cannot listen on ${bind}:${port} (${reason}): end the program that has the port, or set BUSBAR_PROXY_PORT or BUSBAR_PROXY_BIND`
      throw new Error(this.#fault, { cause: error })
    }
  }

  /** None of the platform's own name: whoever has a wildcard above it has nothing of what that is asked. */
  #routesOf(head: Head): readonly ProxyRoute[] {
    const name = servedName(head)
    return name === this.#platform?.hostname ? [] : this.#hosts.routesOf(name)
  }

  #routeOf(head: Head): ProxyRoute | undefined {
    const path = ruledPath(head.path)
    return this.#routesOf(head).find(one => isBelow(one.path, path))
  }

  #compilePlatform(route: PlatformRoute | null): CompiledPlatform | undefined {
    this.#platformTarget.retarget(
      route === null ? null : { deploymentId: '', containerId: '', ...route.upstream }
    )
    if (route === null) return undefined
    const { ownProxy } = this.parts.instance
    return compilePlatform(route, this.#platformTarget, { limits: defaultLimits, shows: ownProxy })
  }

  #decide(head: Head, request: IncomingMessage): Decision | Promise<Decision> {
    const path = pathOf(head.path)
    const { address, origin } = this.#originOf(request)
    const visit = { path, address, request }
    if (servedName(head) === this.#platform?.hostname) return this.#platform.decide(visit, origin)
    const routes = this.#routesOf(head)
    // Whichever rule it comes by, it may lead to where another one's is: past its password, too.
    if (routes.some(isConfined) && climbs(path)) return 'badTarget'
    const route = this.#routeOf(head)
    const compiled = route === undefined ? undefined : this.#compiled.get(route.id)
    if (compiled !== undefined) return compiled.decide(visit, origin)
    return routes.length === 0 ? unknownHost : unknownPath
  }

  #originOf({ socket, headers }: IncomingMessage): {
    readonly address: string
    readonly origin: ForwardedOrigin | undefined
  } {
    const peer = plainAddress(socket.remoteAddress ?? '')
    if (!this.#isTrusted(peer)) return { address: peer, origin: undefined }
    // Node joins several of them; its types do not know that of this one.
    const claimed = [headers['x-forwarded-for'] ?? []].flat().join(',')
    const { address, forwardedFor } = originOf(peer, claimed, this.#isTrusted)
    const proto = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
    return { address, origin: { forwardedFor, proto } }
  }

  #faultOf(hostname: string): string | null {
    if (hostname === this.#platform?.hostname) return this.#platform.fault
    const routes: readonly ProxyRoute[] = this.#hosts.routesOf(hostname)
    const lacks = new Set(routes.flatMap(route => lackOf(route, this.abilities)))
    return lacks.size === 0
      ? null
      : `It is answered with 503, because ${this.name} cannot do ${[...lacks].join(', ')}: ${this.lackRemedy}`
  }
}

/** A browser may ask by a whole name, with its dot. */
const servedName = (head: Head): string => hostnameOf(head).replace(/\.$/, '')
