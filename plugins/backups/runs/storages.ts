import type { PlatformStore } from 'busbar/api/platform-backups'
import type { OptionalHandle } from 'busbar/sdk'
import type { BackupStorage } from '../api.js'
import type { DestinationService } from '../destinations/destination-service.js'
import { openLocal } from '../destinations/providers.js'
import { keyOf, trimSlashes } from './file-name.js'

interface StoragesParts {
  readonly destinations: DestinationService
  /** Of what is kept on this machine. */
  readonly root: string
  readonly platform: OptionalHandle<PlatformStore>
}

/** Without a destination it is this machine, or the bucket of the platform. */
interface Place {
  readonly destination_id: string | null
  readonly in_platform_store: boolean
}

interface OpenStorage {
  readonly storage: BackupStorage
  /** What keys begin with. */
  readonly prefix: string
  /** For a log. */
  readonly name: string
}

/** Where a backup is, or is to be. */
export class Storages {
  constructor(private readonly parts: StoragesParts) {}

  /** Whether what has no destination is kept in the bucket of the platform from now on. */
  async hasPlatformStore(): Promise<boolean> {
    return (await this.parts.platform.get()?.settings()) !== undefined
  }

  /** Rejects where the place is gone. */
  async open(
    projectId: string,
    { destination_id: destinationId, in_platform_store: inPlatformStore }: Place
  ): Promise<OpenStorage> {
    const { destinations, root } = this.parts
    if (destinationId === null && inPlatformStore) return await this.#openPlatform(projectId)
    if (destinationId === null)
      return { storage: await openLocal(root, projectId), prefix: '', name: 'this machine' }
    const opened = await destinations.open(projectId, destinationId)
    if (opened === undefined) throw new Error('the destination is not there any more')
    return opened
  }
  async #openPlatform(projectId: string): Promise<OpenStorage> {
    const found = await this.parts.platform.get()?.settings()
    if (found === undefined)
      throw new Error('the bucket of the platform is not enabled: set it with PUT /api/backups/remote')
    const { S3Storage } = await import('../destinations/s3-storage.js')
    return {
      storage: new S3Storage(found.bucket),
      prefix: keyOf(trimSlashes(found.prefix), 'databases', projectId),
      name: 'the bucket of the platform'
    }
  }
}
