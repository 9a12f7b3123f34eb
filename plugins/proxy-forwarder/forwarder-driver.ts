import type { TrafficSwitch } from 'busbar/api/deployments'
import {
  type ApplicationTargets,
  type HostReport,
  type HostTable,
  hostTableOf,
  isBelow,
  type ProxyAbility,
  type ProxyDriver,
  type ProxyRoute,
  pathOf,
  type RoutingTable
} from 'busbar/api/domains'
import {
  type ConnectionCaps,
  defaultLimits,
  type ForwardingServer,
  type Head,
  hostnameOf,
  type OwnAnswer,
  openForwardingServer
} from 'busbar/sdk/http1'
import { type CompiledRoute, compileRoute, lackOf } from './compiled-route.js'
import { Containers } from './containers.js'
import type { RequestNotes } from './request-notes.js'
import type { Settings } from './settings.js'

const caps: ConnectionCaps = Object.freeze({ inAll: 8192, perAddress: 500 })
const unknownHost: OwnAnswer = { status: 404, sentence: 'Nothing is served under this name here.' }
const unknownPath: OwnAnswer = { status: 404, sentence: 'Nothing is served under this path here.' }

/** Hostnames over plain HTTP, on one port of this process. */
export class ForwarderDriver implements ProxyDriver {
  readonly name = 'the built-in forwarder'
  readonly abilities: readonly ProxyAbility[] = ['headers', 'ip_allowlist', 'redirect']
  readonly lackRemedy =
    'leave it out (of TLS: ssl_mode off), or have the platform serve domains by a proxy that can, such as Caddy, by a plugin that drives it'
  readonly fallback = true

  readonly #containers = new Containers()
  #hosts: HostTable = hostTableOf({ routes: [] })
  /** By the id of a route. */
  #compiled = new Map<string, CompiledRoute>()
  #server: ForwardingServer | undefined
  #fault: string | null = null
  #isStopped = false

  constructor(
    private readonly settings: Settings,
    private readonly notes: RequestNotes
  ) {}

  /** Why nothing is served; null where it is, or has not been asked for. */
  fault(): string | null {
    return this.#fault
  }

  async load(table: RoutingTable): Promise<void> {
    const context = { abilities: this.abilities, limits: defaultLimits }
    const compiled = new Map(
      table.routes.map(route => [route.id, compileRoute(route, this.#containers.for(route), context)])
    )
    // Both in one turn: a request meets the former table, or this one.
    this.#hosts = hostTableOf(table)
    this.#compiled = compiled
    this.#containers.keepOnly(table.routes)
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
  }

  async release(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    await server?.close(() => this.#containers.open())
  }

  async report(hostname: string): Promise<HostReport> {
    return { fault: this.#fault ?? this.#faultOf(hostname), tlsAt: null, tlsFault: null }
  }

  ports(): { readonly http: number | null; readonly https: null } {
    return { http: this.#server?.port ?? null, https: null }
  }

  async #listen(): Promise<void> {
    if (this.#server !== undefined || this.#isStopped) return
    const { port, bind } = this.settings
    try {
      const server = await openForwardingServer(
        { host: bind, port },
        {
          limits: defaultLimits,
          observe: (head, request) =>
            this.notes.begin(head, request, this.#routeOf(head)?.applicationId ?? null),
          decide: (head, request) => {
            const route = this.#routeOf(head)
            const compiled = route === undefined ? undefined : this.#compiled.get(route.id)
            if (compiled !== undefined) return compiled.decide(head, request)
            return this.#routesOf(head).length === 0 ? unknownHost : unknownPath
          }
        },
        caps
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

  #routesOf(head: Head): readonly ProxyRoute[] {
    return this.#hosts.routesOf(hostnameOf(head).replace(/\.$/, ''))
  }

  #routeOf(head: Head): ProxyRoute | undefined {
    const path = pathOf(head.path)
    return this.#routesOf(head).find(one => isBelow(one.path, path))
  }

  #faultOf(hostname: string): string | null {
    const routes: readonly ProxyRoute[] = this.#hosts.routesOf(hostname)
    const lacks = new Set(routes.flatMap(route => lackOf(route, this.abilities)))
    return lacks.size === 0
      ? null
      : `It is answered with 503, because ${this.name} cannot do ${[...lacks].join(', ')}: ${this.lackRemedy}`
  }
}
