import { isProblem, type Log, Serial } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import { instanceLabel } from '../labels.js'
import { problems } from '../problems.js'
import { defaultHostPorts, type HostPorts, parseHostPorts } from './host-ports.js'
import { type HostTools, type Outcome, withHostTools } from './host-tools.js'
import { bridgePrefix, installationTag, unnamedBridge } from './installation-tag.js'
import { type Family, rulesFor, withoutRules } from './packet-rules.js'

const bridgeNameOption = 'com.docker.network.bridge.name'

const programs: Readonly<Record<Family, { readonly save: string; readonly restore: string }>> = {
  ipv4: { save: 'iptables-save', restore: 'iptables-restore' },
  ipv6: { save: 'ip6tables-save', restore: 'ip6tables-restore' }
}
/** dockerd writes too: what was read may be old when it is written. */
const maxAttempts = 3
const lockSeconds = 10

interface HostLimitsDependencies {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly log: Log
  /** HOST_PORTS_FOR_CONTAINERS. */
  readonly ports: string | undefined
}

/** `unlimited`: somebody wants it so. `failed`: containers may reach whatever the machine offers at its gateways. */
export type LimitState =
  | { readonly kind: 'unknown' | 'limited' | 'unlimited' }
  | { readonly kind: 'failed'; readonly reason: string }

/**
 * Keeps containers of this installation from the machine they run on: by rules in the packet filter of the engine's
 * machine, in chains of this installation's own. They cover its networks by how the names of their bridges begin,
 * so a further network needs none. They are there as long as it has a network.
 */
export class HostLimits {
  #state: LimitState = { kind: 'unknown' }
  /** One after the other: what is read must be what is changed. */
  readonly #turns = new Serial()
  #applied: Promise<void> | undefined

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
    const ports = this.#ports()
    try {
      let bridges = await this.#bridges()
      // Nothing was ever set by this process, nor has it anything that would need it.
      if (bridges === undefined && this.#state.kind === 'unknown') return
      await this.#set(bridges, ports)
      if (bridges === undefined) {
        // Another process may have made a network, with its rules, while they were taken away.
        bridges = await this.#bridges()
        if (bridges !== undefined) await this.#set(bridges, ports)
      }
      this.#state = { kind: bridges === undefined ? 'unknown' : ports === 'all' ? 'unlimited' : 'limited' }
    } catch (error) {
      if (isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE') throw error
      this.#fail(error instanceof Error ? error.message : String(error))
    }
  }

  async #set(bridges: readonly string[] | undefined, ports: HostPorts): Promise<void> {
    const { engine, instanceId } = this.dependencies
    const tag = installationTag(instanceId)
    if (bridges === undefined || ports === 'all') await liftLimits(engine, instanceId)
    else
      await changeRules(engine, instanceId, (saved, family) =>
        rulesFor(saved, { family, tag, bridges, ports })
      )
  }

  #ports(): HostPorts {
    const value = this.dependencies.ports ?? defaultHostPorts
    const ports = parseHostPorts(value)
    if (ports === undefined) throw problems.badHostPorts({ value })
    return ports
  }

  /** Undefined without any network. Those of older versions have a bridge that the engine named. */
  async #bridges(): Promise<readonly string[] | undefined> {
    const { engine, instanceId } = this.dependencies
    const networks = await engine.call(
      'list networks',
      async docker => await docker.listNetworks({ filters: { label: [`${instanceLabel}=${instanceId}`] } })
    )
    if (networks.length === 0) return undefined
    const unnamed = networks.filter(
      ({ Options }) => (Options as Record<string, string> | null)?.[bridgeNameOption] === undefined
    )
    return [`${bridgePrefix(instanceId)}+`, ...unnamed.map(({ Id }) => unnamedBridge(Id))]
  }

  #fail(reason: string): void {
    const isNew = this.#state.kind !== 'failed' || this.#state.reason !== reason
    this.#state = { kind: 'failed', reason }
    if (!isNew) return
    this.dependencies.log.warn(
      { reason, bridges: `${bridgePrefix(this.dependencies.instanceId)}+` },
      "applications and builds reach every port that the engine's machine has open at the gateways of their networks: " +
        'its packet filter could not be set. The README of runtime-docker names the rules that are missing; ' +
        'HOST_PORTS_FOR_CONTAINERS=all says that it is meant so'
    )
  }
}

/** Takes the rules of an installation away. */
export async function liftLimits(engine: EngineClient, instanceId: string): Promise<void> {
  const tag = installationTag(instanceId)
  await changeRules(engine, instanceId, saved => withoutRules(saved, tag))
}

/** `decide`: from what is there to what `iptables-restore` is to read; undefined changes nothing. */
type Decide = (saved: string, family: Family) => string | undefined

async function changeRules(engine: EngineClient, instanceId: string, decide: Decide): Promise<void> {
  await withHostTools(engine, instanceId, async tools => {
    await Promise.all(
      (['ipv4', 'ipv6'] as const).map(async family => {
        await changeFamily(tools, family, decide)
      })
    )
  })
}

async function changeFamily(tools: HostTools, family: Family, decide: Decide): Promise<void> {
  const { save, restore } = programs[family]
  for (let attempt = 1; ; attempt++) {
    const saved = await tools.run([save, '-t', 'filter'])
    if (saved.code !== 0) {
      if (family === 'ipv6' && !(await hasIpv6(tools))) return
      throw new Error(failureOf(save, saved))
    }
    const rules = decide(saved.output, family)
    if (rules === undefined) return
    const restored = await tools.run([restore, '--noflush', '-w', String(lockSeconds)], rules)
    if (restored.code === 0) return
    if (attempt === maxAttempts) throw new Error(failureOf(restore, restored))
  }
}

const hasIpv6 = async (tools: HostTools): Promise<boolean> =>
  (await tools.run(['cat', '/proc/net/if_inet6'])).code === 0

const failureOf = (program: string, { code, output, errors }: Outcome): string =>
  code === 126 || code === 127
    ? `the engine's machine has no ${program}`
    : `${program} failed (${code}): ${(errors.trim() || output.trim()).slice(0, 500)}`
