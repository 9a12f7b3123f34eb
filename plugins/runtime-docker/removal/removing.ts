import type { Clock, Log } from 'busbar/sdk'
import { ContainerAccess } from '../container-access.js'
import type { ContainerOwners } from '../container-owners.js'
import type { EngineClient } from '../engine-client.js'
import { FileHolders } from '../file-holders.js'
import type { Identity } from '../identity.js'
import type { DiskMeasure } from '../inventory/disk-measure.js'
import { VolumeContents } from '../volume-contents.js'
import { Volumes } from '../volumes.js'
import { LeftVolumes } from './left-volumes.js'
import { VolumeEmptier } from './volume-emptier.js'
import { VolumeHolders } from './volume-holders.js'

interface RemovingParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly identity: Identity
  readonly owners: ContainerOwners
  readonly clock: Clock
  readonly log: Log
  readonly measure: DiskMeasure
}

interface Removing {
  readonly access: ContainerAccess
  readonly volumes: Volumes
  readonly files: FileHolders
  readonly contents: VolumeContents
  readonly leftVolumes: LeftVolumes
}

/** Containers and volumes, each of which goes with the other's help. */
export function removing(parts: RemovingParts): Removing {
  const holders = new VolumeHolders(parts)
  const emptier = new VolumeEmptier(parts)
  const files = new FileHolders(parts)
  const access: ContainerAccess = new ContainerAccess({
    ...parts,
    holders,
    files,
    onHeld: async projectId => await leftVolumes.note(projectId)
  })
  const contents = new VolumeContents(parts)
  const volumes = new Volumes({ ...parts, access, emptier, contents })
  const removeVolume = async (name: string): Promise<void> => await volumes.removeFree(name)
  const leftVolumes = new LeftVolumes({ ...parts, holders, files, emptier, removeVolume })
  return { access, volumes, files, contents, leftVolumes }
}
