import type { ContainerDiskUse, Owner } from 'busbar/api/containers'
import type Docker from 'dockerode'
import type { ContainerOwners } from './container-owners.js'
import type { EngineClient } from './engine-client.js'
import { instanceLabel, isAmong, ownerFilter } from './labels.js'
import { isAnonymous } from './volumes.js'

interface DiskUseParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly owners: ContainerOwners
  /** Of every volume of the engine, by name. */
  readonly volumeSizes: () => Promise<ReadonlyMap<string, number>>
}

// The types of dockerode leave it out; the engine does too for a container that has written nothing.
type SizedContainer = Docker.ContainerInfo & { readonly SizeRw?: number }

/** What containers have written, by the engine's account. */
export async function containerDiskUse(
  { engine, instanceId, owners, volumeSizes }: DiskUseParts,
  owner: Owner
): Promise<readonly ContainerDiskUse[]> {
  const label = [`${instanceLabel}=${instanceId}`, ...ownerFilter(owner)]
  const found: readonly SizedContainer[] = await engine.call(
    'measure containers',
    async docker => await docker.listContainers({ all: true, size: true, filters: { label } }),
    { patient: true }
  )
  const seen: Array<{ container: SizedContainer; own: Owner; volumes: string[] }> = []
  for (const container of found) {
    // Known but for the first time; asked for all at once, an engine with many of them would be kept from its work.
    const own = await owners.of(container.Id)
    if (own === undefined || !isAmong(owner, own)) continue
    const names = (container.Mounts ?? []).flatMap(({ Name }) => Name ?? [])
    seen.push({ container, own, volumes: names.filter(isAnonymous) })
  }
  // Measuring volumes makes the engine walk through every one it has.
  const sizes = seen.some(({ volumes }) => volumes.length > 0) ? await volumeSizes() : undefined
  return seen.map(({ container, own, volumes }) => ({
    id: container.Id,
    owner: own,
    isRunning: container.State === 'running',
    bytes: volumes.reduce((sum, volume) => sum + (sizes?.get(volume) ?? 0), container.SizeRw ?? 0)
  }))
}
