import type { BackupStorage } from '../api.js'
import type { DestinationService } from '../destinations/destination-service.js'
import { openLocal } from '../destinations/providers.js'

interface StoragesParts {
  readonly destinations: DestinationService
  /** Of what is kept on this machine. */
  readonly root: string
}

export interface OpenStorage {
  readonly storage: BackupStorage
  /** What keys begin with. */
  readonly prefix: string
  /** For a log. */
  readonly name: string
}

/** Where a backup is, or is to be. */
export class Storages {
  constructor(private readonly parts: StoragesParts) {}

  /** Without a destination it is this machine. Rejects where the destination is gone. */
  async open(projectId: string, destinationId: string | null): Promise<OpenStorage> {
    const { destinations, root } = this.parts
    if (destinationId === null)
      return { storage: await openLocal(root, projectId), prefix: '', name: 'this machine' }
    const opened = await destinations.open(projectId, destinationId)
    if (opened === undefined) throw new Error('the destination is not there any more')
    return opened
  }
}
