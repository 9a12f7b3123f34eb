import { type BackupStorage, StorageError } from '../api.js'

/** A file is not in the bucket that the platform has now. */
class MovedBucket extends StorageError {
  constructor() {
    super(
      'the file is in a bucket that the platform had before, and not in the one that it has now: an admin may copy it there under its key, or set the former bucket again with PUT /api/backups/remote'
    )
  }
}

/** The place of what is kept on this machine, among ids of destinations. */
export const thisMachine = 'local'

/** Whether a place has failed that is waited for, and would be again. This machine never is, and a bucket without the file has answered. */
export const isAway = (place: string, error: unknown): boolean =>
  place !== thisMachine && !(error instanceof MovedBucket)

type Options = Parameters<BackupStorage['remove']>[1]

/**
 * The bucket that the platform has now, for what was put into another one. What somebody has copied along is found; what is not there
 * is not gone, and is no file that was removed.
 */
export class MovedStorage implements BackupStorage {
  constructor(private readonly present: BackupStorage) {}

  async put(...given: Parameters<BackupStorage['put']>): Promise<void> {
    await this.present.put(...given)
  }

  async get(...given: Parameters<BackupStorage['get']>): Promise<AsyncIterable<Buffer>> {
    return await this.present.get(...given)
  }

  async size(key: string, options: Options): Promise<number> {
    const size = await this.present.size(key, options)
    if (size === null) throw new MovedBucket()
    return size
  }

  async remove(key: string, options: Options): Promise<void> {
    await this.size(key, options)
    await this.present.remove(key, options)
  }

  async test(options: Options): Promise<void> {
    await this.present.test(options)
  }

  async free(): Promise<number | null> {
    return await this.present.free()
  }
}
