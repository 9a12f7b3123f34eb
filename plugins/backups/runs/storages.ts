import type { PlatformStore } from 'busbar/api/platform-backups'
import type { OptionalHandle } from 'busbar/sdk'
import type { BackupStorage } from '../api.js'
import type { DestinationService } from '../destinations/destination-service.js'
import { openLocal } from '../destinations/providers.js'
import { keyOf, trimSlashes } from './file-name.js'
import { MovedStorage } from './moved-bucket.js'

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
  /** In which bucket of the platform it was put; null where it is not yet, or that is not known. */
  readonly platform_place: string | null
}

interface OpenStorage {
  readonly storage: BackupStorage
  /** What keys begin with. */
  readonly prefix: string
  /** For a log. */
  readonly name: string
  /** Which bucket of the platform it is; null elsewhere. */
  readonly platformPlace: string | null
}

type PlatformBucket = Exclude<Awaited<ReturnType<PlatformStore['settings']>>, undefined>['bucket']

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
    { destination_id: destinationId, in_platform_store: inPlatformStore, platform_place: place }: Place
  ): Promise<OpenStorage> {
    const { destinations, root } = this.parts
    if (destinationId === null && inPlatformStore) return await this.#openPlatform(projectId, place)
    if (destinationId === null)
      return {
        storage: await openLocal(root, projectId),
        prefix: '',
        name: 'this machine',
        platformPlace: null
      }
    const opened = await destinations.open(projectId, destinationId)
    if (opened === undefined) throw new Error('the destination is not there any more')
    return { ...opened, platformPlace: null }
  }

  async #openPlatform(projectId: string, place: string | null): Promise<OpenStorage> {
    const found = await this.parts.platform.get()?.settings()
    if (found === undefined)
      throw new Error('the bucket of the platform is not enabled: set it with PUT /api/backups/remote')
    const { S3Storage } = await import('../destinations/s3-storage.js')
    const platformPlace = placeOf(found.bucket)
    const storage = new S3Storage(found.bucket)
    return {
      storage: place === null || place === platformPlace ? storage : new MovedStorage(storage),
      prefix: keyOf(trimSlashes(found.prefix), 'databases', projectId),
      name: 'the bucket of the platform',
      platformPlace
    }
  }
}

const placeOf = ({ endpoint, region, bucket }: PlatformBucket): string =>
  `${endpoint || `s3.${region}.amazonaws.com`}/${bucket}`
