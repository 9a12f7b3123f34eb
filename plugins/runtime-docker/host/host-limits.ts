import { isProblem, type Log, Serial } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import { instanceLabel, purposeLabel } from '../labels.js'
import type { BuildHosts } from './build-hosts.js'
import type { HostPorts } from './host-ports.js'
import { type HostTools, withHostTools } from './host-tools.js'
import { bridgeOf, bridgePrefix, buildBridgePrefix, installationTag } from './installation-tag.js'
import { type Family, families, PacketFilter, type SavedTables } from './packet-filter.js'
import { guardRules, ownRules, type PacketPolicy, reachRules, withoutRules } from './packet-rules.js'

/** dockerd writes too: what was read may be old when it is written. */
const maxAttempts = 3

export interface HostLimitsDependencies {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly log: Log
  /** HOST_PORTS_FOR_CONTAINERS. */
  readonly ports: HostPorts
  /** MAX_CONTAINER_CONNECTIONS: TCP connections of 16 neighbouring containers. */
  readonly connections: number
  /** BUILD_PRIVATE_HOSTS. */
  readonly buildHosts: BuildHosts
  /** BUSBAR_SUBNETS. */
  readonly subnets: readonly string[]
}

/** Interfaces that containers are behind, and which of them those of builds are. */
interface Bridges {
  readonly all: readonly string[]
  readonly builds: readonly string[]
}

/**
 * `unlimited`: configured so. `unguarded`: containers reach what they may of the machine, and could do harm to
 * each other by way of it. `failed`: neither holds; they reach whatever the machine offers at its gateways.
 */
export type LimitState =
  | { readonly kind: 'unknown' | 'limited' | 'unlimited' }
  | { readonly kind: 'unguarded' | 'failed'; readonly reason: string }

/**
 * Keeps containers of this installation from the machine they run on, and from each other there: by rules in the packet filter of the engine's
 * machine, in chains of this installation's own. They cover its networks by how the names of their bridges begin,
 * so a further network needs none. They are there as long as it has a network.
 */
export class HostLimits {
  #state: LimitState = { kind: 'unknown' }
  /** One after the other: what is read must be what is changed. */
  readonly #turns = new Serial()
  #applied: Promise<void> | undefined
  /** What the machine said of the rules after they were set; to set them again would forget whose connections are open. */
  readonly #set = new Map<Family, string>()

  constructor(private readonly dependencies: HostLimitsDependencies) {}

  get state(): LimitState {
    return this.#state
  }

  /** Resolves when the rules were set since this process started, or it is known that they cannot be. */
  async ensure(): Promise<void> {
    await (this.#applied ?? this.refresh())
  }

  /**
   * Sets them anew, which changes nothing where they are: others change the packet filter too. Without a network
   * there is nothing to limit, and what is left of the rules is taken away.
   */
  async refresh(): Promise<void> {
    const turn = this.#turns.run(async () => {
      await this.#apply()
    })
    this.#applied = turn
    await turn.catch((error: unknown) => {
      if (this.#applied === turn) this.#applied = undefined
      throw error
    })
  }

  /** Never rejects for what the machine cannot do: an installation without a packet filter is one, too. */
  async #apply(): Promise<void> {
    const { ports, connections, buildHosts: hosts, subnets: projects } = this.dependencies
    const limits = ({ all, builds }: Bridges) => ({
      ports,
      connections,
      bridges: all,
      builds: { bridges: builds, hosts, projects }
    })
    try {
      let bridges = await this.#bridges()
      // Nothing was ever set by this process, nor has it anything that would need it.
      if (bridges === undefined && this.#state.kind === 'unknown') return
      if (bridges === undefined) {
        await this.#lift()
        // Another process may have made a network, with its rules, while they were taken away.
        bridges = await this.#bridges()
      }
      if (bridges === undefined) this.#state = { kind: 'unknown' }
      else this.#become(await this.#limit(limits(bridges)))
    } catch (error) {
      if (isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE') throw error
      this.#become({ kind: 'failed', reason: textOf(error) })
    }
  }

  async #lift(): Promise<void> {
    const { engine, instanceId } = this.dependencies
    this.#set.clear()
    await liftLimits(engine, instanceId)
  }

  async #limit(limits: Omit<PacketPolicy, 'family' | 'tag'>): Promise<LimitState> {
    const { engine, instanceId } = this.dependencies
    const tag = installationTag(instanceId)
    let unguarded: string | undefined
    await withPacketFilters(engine, instanceId, async filter => {
      const policy = { ...limits, family: filter.family, tag }
      const wanted = JSON.stringify(policy)
      const before = await filter.save()
      if (before === undefined || this.#set.get(filter.family) === wanted + ownRules(before, tag)) return
      await restored(filter, saved => reachRules(saved, policy), before)
      await restored(filter, saved => guardRules(saved, policy)).catch((error: unknown) => {
        unguarded = textOf(error)
      })
      const after = await filter.save()
      if (after !== undefined) this.#set.set(filter.family, wanted + ownRules(after, tag))
    })
    return unguarded === undefined ? { kind: 'limited' } : { kind: 'unguarded', reason: unguarded }
  }

  /** By their whole names, of those that exist. */
  async buildBridges(): Promise<readonly string[]> {
    return (await this.#networks()).filter(({ isForBuilds }) => isForBuilds).map(({ name }) => name)
  }

  /** Undefined without any network. Older versions let the engine name bridges, or gave those of builds no name of their own. */
  async #bridges(): Promise<Bridges | undefined> {
    const { instanceId } = this.dependencies
    const named = await this.#networks()
    if (named.length === 0) return undefined
    const [ours, builds] = [bridgePrefix(instanceId), buildBridgePrefix(instanceId)]
    const older = named.filter(({ name, isForBuilds }) => isForBuilds && !name.startsWith(builds))
    return {
      all: [`${ours}+`, ...named.map(({ name }) => name).filter(name => !name.startsWith(ours))],
      builds: [`${builds}+`, ...older.map(({ name }) => name)]
    }
  }

  async #networks(): Promise<ReadonlyArray<{ readonly name: string; readonly isForBuilds: boolean }>> {
    const { engine, instanceId } = this.dependencies
    const networks = await engine.call(
      'list networks',
      async docker => await docker.listNetworks({ filters: { label: [`${instanceLabel}=${instanceId}`] } })
    )
    return networks.map(network => ({
      name: bridgeOf(network),
      isForBuilds: network.Labels?.[purposeLabel] === 'builds'
    }))
  }

  #become(state: LimitState): void {
    const { log, instanceId, ports, buildHosts } = this.dependencies
    const before = this.#state
    // No warning where no limit is configured.
    const isUnlimited = ports === 'all' && buildHosts.allowsAll
    this.#state = isUnlimited ? { kind: 'unlimited' } : state
    if (!('reason' in state)) return
    const fields = { reason: state.reason, bridges: `${bridgePrefix(instanceId)}+` }
    if (isUnlimited) log.debug(fields, "the packet filter of the engine's machine could not be set")
    else if (!('reason' in before) || before.reason !== state.reason) log.warn(fields, warnings[state.kind])
  }
}

const warnings = {
  failed:
    "applications and builds reach every port that the engine's machine has open at the gateways of their networks, and builds " +
    'its private networks: its packet filter could not be set. The README of runtime-docker names the rules that are missing; ' +
    'HOST_PORTS_FOR_CONTAINERS=all and BUILD_PRIVATE_HOSTS=allow say that it is meant so',
  unguarded:
    "applications and builds may pass for each other outside of their networks, and fill the machine's table of connections: " +
    'two of the rules of its packet filter could not be set. The README of runtime-docker names them'
} as const

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Takes the rules of an installation away. */
export async function liftLimits(engine: EngineClient, instanceId: string): Promise<void> {
  await withHostTools(engine, instanceId, async tools => {
    await liftRules(tools, instanceId)
  })
}

/** The same with programs of the engine's machine at hand. */
export async function liftRules(tools: HostTools, instanceId: string): Promise<void> {
  const tag = installationTag(instanceId)
  await withFilters(tools, async filter => {
    await restored(filter, saved => withoutRules(saved, tag))
  })
}

async function withPacketFilters(
  engine: EngineClient,
  instanceId: string,
  use: (filter: PacketFilter) => Promise<void>
): Promise<void> {
  await withHostTools(engine, instanceId, async tools => {
    await withFilters(tools, use)
  })
}

async function withFilters(tools: HostTools, use: (filter: PacketFilter) => Promise<void>): Promise<void> {
  await Promise.all(families.map(async family => await use(new PacketFilter(tools, family))))
}

/** `decide`: from what is there to what `iptables-restore` is to read; undefined changes nothing. `seen`: what was there just now. */
async function restored(
  filter: PacketFilter,
  decide: (saved: SavedTables) => string | undefined,
  seen?: SavedTables
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const saved = attempt === 1 && seen !== undefined ? seen : await filter.save()
    const rules = saved === undefined ? undefined : decide(saved)
    if (rules === undefined) return
    try {
      await filter.restore(rules)
      return
    } catch (error) {
      if (attempt === maxAttempts) throw error
    }
  }
}
