import { isProblem, type Log } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import { type HostTools, type ToolsKind, withHostTools } from './host-tools.js'
import { lifeSeconds } from './tool-leftovers.js'

const bridgesFolder = '/busbar-bridges'
const networkFolder = '/busbar-network'

/** Interfaces of the machine, and what its kernel can be told of each. */
const bridgeTools: ToolsKind = {
  purpose: 'for bridges',
  label: 'busbar-system=bridge-tools',
  lifeSeconds,
  files: [],
  writable: [
    { source: '/sys/devices/virtual/net', target: bridgesFolder },
    { source: '/proc/sys/net', target: networkFolder }
  ],
  host: { NetworkMode: 'host', CapAdd: ['NET_ADMIN'] }
}

/** One that is gone by now needs nothing. */
const script = `
for bridge; do
  [ -e "${networkFolder}/ipv4/conf/$bridge" ] || continue
  ip link set dev "$bridge" type bridge ageing_time 0 2>/dev/null ||
    echo 0 > "${bridgesFolder}/$bridge/bridge/ageing_time" || exit 1
  echo 1 > "${networkFolder}/ipv4/conf/$bridge/rp_filter" || exit 1
  [ ! -e "${networkFolder}/ipv6/conf/$bridge/disable_ipv6" ] ||
    echo 1 > "${networkFolder}/ipv6/conf/$bridge/disable_ipv6" || exit 1
done
[ -d "${networkFolder}/ipv4" ]`

/** `failed`: steps of builds can fill tables that the machine has once. */
type BridgeState =
  | { readonly kind: 'unknown' | 'limited' }
  | { readonly kind: 'failed'; readonly reason: string }

interface BridgeKeeperDependencies {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly log: Log
  /** The names of those that steps of builds are behind. */
  readonly buildBridges: () => Promise<readonly string[]>
}

/**
 * A step of a build can send frames with any sender (NET_RAW, which no build can be denied). A bridge learns
 * each, the kernel keeps what it has learnt in memory of its own, and the addresses of neighbours in one table for the whole
 * machine, IPv4 and IPv6. So the bridges of builds learn nothing, and what claims an address of another network is not
 * listened to. These networks have no IPv6.
 */
export class BridgeKeeper {
  #state: BridgeState = { kind: 'unknown' }
  #known: ReadonlySet<string> = new Set()

  constructor(private readonly dependencies: BridgeKeeperDependencies) {}

  get state(): BridgeState {
    return this.#state
  }

  /** Resolves when `bridge`, or without it each that exists, is limited, or it is known that it cannot be. */
  async ensure(bridge?: string): Promise<void> {
    if (bridge !== undefined && this.#known.has(bridge)) return
    const bridges = await this.dependencies.buildBridges()
    if (bridges.some(bridge => !this.#known.has(bridge))) await this.#apply(bridges)
  }

  /** Limits them anew: after a restart of the machine they are others. */
  async refresh(): Promise<void> {
    const bridges = await this.dependencies.buildBridges()
    if (bridges.length > 0) await this.#apply(bridges)
    else this.#known = new Set()
  }

  async #apply(bridges: readonly string[]): Promise<void> {
    const { engine, instanceId } = this.dependencies
    try {
      await withHostTools(engine, instanceId, async tools => await limit(tools, bridges), bridgeTools)
      this.#state = { kind: 'limited' }
    } catch (error) {
      if (isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE') throw error
      this.#fail(error instanceof Error ? error.message : String(error))
    }
    this.#known = new Set(bridges)
  }

  #fail(reason: string): void {
    const before = this.#state
    this.#state = { kind: 'failed', reason }
    if (before.kind === 'failed' && before.reason === reason) return
    this.dependencies.log.warn(
      { reason },
      'a step of a build can fill the tables of neighbours of its machine: the bridges of builds could not be set. The README of runtime-docker says how'
    )
  }
}

async function limit(tools: HostTools, bridges: readonly string[]): Promise<void> {
  const { code, output, errors } = await tools.run(['sh', '-c', script, 'sh', ...bridges])
  if (code !== 0) throw new Error(`not done: ${(errors + output).trim().slice(0, 500)}`)
}
