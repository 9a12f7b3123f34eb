import { createHash, randomBytes } from 'node:crypto'
import type Docker from 'dockerode'

const tagLength = 5
/** Of a network interface. */
const longestName = 15

/**
 * Five characters that stand for this installation where there is no room for its id: in the names of network
 * interfaces, which end at 15, and of chains of the packet filter.
 */
export const installationTag = (instanceId: string): string =>
  BigInt(`0x${createHash('sha256').update(instanceId).digest('hex')}`)
    .toString(36)
    .slice(-tagLength)

/** How the names of all bridges of this installation begin, so that one rule covers those to come as well. */
export const bridgePrefix = (instanceId: string): string => `bb${installationTag(instanceId)}`

/** The same for those of builds. The names of others go on with a hexadecimal digit. */
export const buildBridgePrefix = (instanceId: string): string => `${bridgePrefix(instanceId)}x`

/** A name for a new bridge. By chance: the engine would plug a network into a bridge of that name which it finds. */
export const newBridgeName = (instanceId: string, { forBuilds = false } = {}): string =>
  (bridgePrefix(instanceId) + (forBuilds ? 'x' : '') + randomBytes(4).toString('hex')).slice(0, longestName)

export const bridgeNameOption = 'com.docker.network.bridge.name'

/** The bridge of a network; one that names none gets it from the engine. */
export const bridgeOf = ({
  Id: id,
  Options: options
}: Pick<Docker.NetworkInspectInfo, 'Id' | 'Options'>): string =>
  (options as Record<string, string> | null)?.[bridgeNameOption] ?? `br-${id.slice(0, 12)}`
