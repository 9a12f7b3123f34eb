import type {
  ContainerDiskUse,
  ContainerFileUse,
  ContainerRuntime,
  MeasuringLimits,
  Owner
} from 'busbar/api/containers'
import type { BuildFileUse, ImageService } from 'busbar/api/images'
import { ContainerSizes } from '../container-disk-use.js'
import type { ContainerOwners } from '../container-owners.js'
import type { EngineClient } from '../engine-client.js'
import type { HostTools } from '../host/host-tools.js'
import type { PlatformContainer } from '../platform-container.js'
import type { Volumes } from '../volumes.js'
import { type CountedPlaces, FileUse } from './container-file-use.js'
import { containerPlaces } from './container-places.js'
import { FileTools } from './file-tools.js'

interface AccountsParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly owners: ContainerOwners
  readonly volumes: Volumes
  readonly platform: PlatformContainer
  /** Of the builds that run by this process. */
  readonly buildPlaces: () => Promise<readonly CountedPlaces[]>
  /** Programs of the platform's machine. */
  readonly localTools?: HostTools
}

/** What containers have taken of the disk: by the engine's account, and by what that leaves out. */
export class DiskAccounts {
  readonly #fileTools: FileTools
  readonly #sizes: ContainerSizes
  readonly #files: FileUse
  readonly #buildFiles: FileUse

  constructor(parts: AccountsParts) {
    const { engine, instanceId, platform, localTools: local } = parts
    const isInContainer = async (): Promise<boolean> => await platform.isKnown()
    this.#fileTools = new FileTools({ engine, instanceId, local, isInContainer })
    this.#sizes = new ContainerSizes({ ...parts, volumeSizes: async () => await parts.volumes.sizes() })
    const tools = async (dataRoot: string) => await this.#fileTools.open(dataRoot)
    const list = async (owner: Owner) => await containerPlaces(parts, owner)
    this.#files = new FileUse({ engine, tools, list })
    this.#buildFiles = new FileUse({ engine, tools, list: parts.buildPlaces })
  }

  async bytes(owner: Owner, limits: MeasuringLimits): Promise<readonly ContainerDiskUse[]> {
    return await this.#sizes.read(owner, limits)
  }

  async files(
    owner: Owner,
    options: Parameters<ContainerRuntime['fileUse']>[1]
  ): Promise<readonly ContainerFileUse[]> {
    return await this.#files.count(owner, options)
  }

  /** Of each build that runs by this process. */
  async buildFiles(options: Parameters<ImageService['buildFileUse']>[0]): Promise<readonly BuildFileUse[]> {
    const byDeployment = new Map<string, BuildFileUse>()
    for (const { owner, inodes, bytes, namelessBytes, isCut } of await this.#buildFiles.count(
      {},
      { ...options, since: new Date(0) }
    )) {
      const key = owner.deploymentId ?? ''
      const known = byDeployment.get(key)
      byDeployment.set(key, {
        owner,
        inodes: inodes + (known?.inodes ?? 0),
        bytes: bytes + namelessBytes + (known?.bytes ?? 0),
        isCut: isCut || known?.isCut === true
      })
    }
    return [...byDeployment.values()]
  }

  /** Takes away what it keeps on the engine. */
  async close(): Promise<void> {
    await this.#fileTools.close()
  }
}
