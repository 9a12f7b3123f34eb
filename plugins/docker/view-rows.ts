import { builderVolumePrefix, buildpacksVolumePrefixes } from 'busbar/api/builds'
import type {
  DiskShare,
  EngineDiskUse,
  EngineInfo,
  Listed,
  ListedContainer,
  ListedVolume,
  Owner,
  PublishedPort
} from 'busbar/api/containers'
import type { MeasuredDisk } from './disk-figures.js'
import { ownerRef } from './owner-names.js'
import type { DiskUsage, NetworkMember, OwnerAnswer, SystemInfo } from './schemas.js'

/** For what was not measured, as engines say it. */
const unknownBytes = -1

export const ownerAnswer = (owner: Owner, name: string): OwnerAnswer => ({
  ...ownerRef(owner),
  name,
  project_id: owner.projectId ?? '',
  deployment_id: owner.deploymentId ?? null
})

/** Whether a caller with these pins may see it: what belongs to no project is for those without. */
export const isWithin = ({ owner }: Listed, pins: readonly string[] | null): boolean =>
  pins === null || (owner?.projectId !== undefined && pins.includes(owner.projectId))

/** The ports of the machine, each with the one of the container that it leads to. */
export const portMap = (ports: readonly PublishedPort[]): Record<string, string> =>
  Object.fromEntries(ports.map(port => [hostPort(port), `${port.containerPort}/${port.protocol}`]))

/** `8080`, `127.0.0.1:8080`, `[::1]:8080`, `53/udp`. */
function hostPort({ host, hostPort: port, protocol }: PublishedPort): string {
  const address = host === '' ? '' : `${host.includes(':') ? `[${host}]` : host}:`
  return `${address}${port}${protocol === 'tcp' ? '' : `/${protocol}`}`
}

/** How many containers were made from each image. */
export function containersOfImages(containers: readonly ListedContainer[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { imageId } of containers) counts.set(imageId, (counts.get(imageId) ?? 0) + 1)
  return counts
}

/** The containers that are connected to each network. */
export function membersOfNetworks(
  containers: readonly ListedContainer[]
): ReadonlyMap<string, readonly NetworkMember[]> {
  const members = new Map<string, NetworkMember[]>()
  for (const { id, name, networks } of containers)
    for (const { id: network, ipv4Address } of networks) {
      const member = { id, name, ipv4_address: ipv4Address }
      const known = members.get(network)
      if (known === undefined) members.set(network, [member])
      else known.push(member)
    }
  return members
}

/** The containers that have each volume mounted. */
export function usersOfVolumes(
  containers: readonly ListedContainer[]
): ReadonlyMap<string, readonly ListedContainer[]> {
  const users = new Map<string, ListedContainer[]>()
  for (const container of containers)
    for (const volume of new Set(container.volumes)) {
      const known = users.get(volume)
      if (known === undefined) users.set(volume, [container])
      else known.push(container)
    }
  return users
}

/** An engine gives such a name to what an image declares and nobody has named. */
const isAnonymous = (name: string): boolean => /^[0-9a-f]{64}$/.test(name)

/** Whose a volume is: one without a name is its container's. */
export function volumeOwner(volume: ListedVolume, users: readonly ListedContainer[]): Listed {
  const user = isAnonymous(volume.name) ? users.find(({ isManaged }) => isManaged) : undefined
  return volume.isManaged ? volume : (user ?? volume)
}

const cachePrefixes = [builderVolumePrefix, ...Object.values(buildpacksVolumePrefixes)]

/** What a volume of this platform holds; empty for one of others. */
export const volumeKind = (name: string, isManaged: boolean): 'data' | 'cache' | '' =>
  isManaged ? (cachePrefixes.some(prefix => name.startsWith(prefix)) ? 'cache' : 'data') : ''

const entry = ({ count, bytes, reclaimableBytes }: DiskShare) => ({
  count,
  size: bytes,
  reclaimable: reclaimableBytes
})

export const diskUsage = ({ use, at }: MeasuredDisk): DiskUsage => ({
  images: entry(use.images),
  containers: entry(use.containers),
  volumes: entry(use.volumes),
  build_cache: entry(use.buildCache),
  layers_size: use.layersBytes,
  measured_at: at
})

/** What of an image others have too. */
export const sharedSize = (use: EngineDiskUse | undefined, imageId: string): number =>
  use?.sharedBytes.get(imageId) ?? unknownBytes

export const volumeSize = (use: EngineDiskUse | undefined, name: string): number =>
  use?.volumeBytes.get(name) ?? unknownBytes

export const systemInfo = (info: EngineInfo): SystemInfo => ({
  server_version: info.version,
  operating_system: info.operatingSystem,
  os_type: info.osType,
  architecture: info.architecture,
  kernel_version: info.kernelVersion,
  ncpu: info.cores,
  mem_total: info.memoryBytes,
  storage_driver: info.storageDriver,
  logging_driver: info.loggingDriver,
  cgroup_driver: info.cgroupDriver,
  docker_root_dir: info.dataRoot,
  name: info.name,
  containers: info.containers,
  containers_running: info.containersRunning,
  containers_paused: info.containersPaused,
  containers_stopped: info.containersStopped,
  images: info.images
})
