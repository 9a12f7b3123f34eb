import type { ApplicationTargets } from 'busbar/api/domains'
import { addressIn, applicationName, hostName } from './names.js'

/** Where something listens. */
export interface Place {
  readonly host: string
  readonly port: number
}

/** When a name was last asked for, by the clock of the zone, and how often in all. */
interface Asked {
  readonly at: number
  readonly times: number
}

/**
 * What is answered: by name, where the requests of an application go. One that does not run leads to `stopped`, which says so.
 * Names that nobody has told of are unknown.
 */
export class Zone {
  readonly #targets = new Map<string, ApplicationTargets>()
  /** By application, the ports that routes name. */
  #ports = new Map<string, ReadonlySet<number | null>>()
  readonly #places = new Map<string, Place>()
  /** By application, its names in `#places`. */
  readonly #names = new Map<string, Set<string>>()
  readonly #hosts = new Map<string, string>()
  readonly #asked = new Map<string, Asked>()

  constructor(
    private readonly stopped: Place,
    private readonly now: () => number
  ) {}

  /** The names that routes of a table ask by; answers by all others end. */
  serve(
    routes: ReadonlyArray<{ readonly applicationId: string; readonly containerPort: number | null }>
  ): void {
    const ports = new Map<string, Set<number | null>>()
    for (const { applicationId, containerPort } of routes) {
      const known = ports.get(applicationId) ?? new Set()
      ports.set(applicationId, known.add(containerPort))
    }
    const former = new Set([...this.#ports.keys(), ...ports.keys()])
    this.#ports = ports
    for (const applicationId of former) this.#apply(applicationId)
    for (const name of this.#asked.keys()) if (!this.#places.has(name)) this.#asked.delete(name)
  }

  /** Null: it does not run. The names whose answer has changed. */
  retarget(applicationId: string, targets: ApplicationTargets | null): readonly string[] {
    if (targets === null) this.#targets.delete(applicationId)
    else this.#targets.set(applicationId, targets)
    return this.#apply(applicationId)
  }

  /** Where requests of an application go now, as Caddy dials it. */
  dialled(applicationId: string): readonly string[] {
    return [...(this.#ports.get(applicationId) ?? [])].flatMap(port => {
      const target = this.#targets.get(applicationId)?.get(port)
      return target === undefined ? [] : [dialOf(target)]
    })
  }

  isServed(applicationId: string): boolean {
    return this.#ports.has(applicationId)
  }

  /** Where a name of an application leads; undefined for one that is unknown. Remembers that it was asked for. */
  ask(name: string): { readonly target: string; readonly port: number } | undefined {
    const place = this.#places.get(name)
    if (place === undefined) return undefined
    this.#asked.set(name, { at: this.now(), times: (this.#asked.get(name)?.times ?? 0) + 1 })
    return { target: hostName(place.host), port: place.port }
  }

  /** The host that a name stands for. */
  hostOf(name: string): string | undefined {
    return addressIn(name) ?? this.#hosts.get(name)
  }

  /** Undefined for a name that nobody has asked for. */
  asked(name: string): Asked | undefined {
    return this.#asked.get(name)
  }

  #apply(applicationId: string): readonly string[] {
    const ports = this.#ports.get(applicationId) ?? new Set<number | null>()
    const names = new Set<string>()
    const changed: string[] = []
    for (const port of ports) {
      const name = applicationName(applicationId, port)
      const { host, port: at } = this.#targets.get(applicationId)?.get(port) ?? this.stopped
      names.add(name)
      const former = this.#places.get(name)
      if (former?.host === host && former.port === at) continue
      this.#places.set(name, { host, port: at })
      if (addressIn(hostName(host)) === undefined) this.#hosts.set(hostName(host), host)
      changed.push(name)
    }
    for (const name of this.#names.get(applicationId) ?? []) if (!names.has(name)) this.#places.delete(name)
    if (names.size === 0) this.#names.delete(applicationId)
    else this.#names.set(applicationId, names)
    return changed
  }
}

/** As Caddy names a target where it counts requests. */
const dialOf = ({ host, port }: Place): string => `${hostName(host)}:${port}`
