import { type BucketOptions, S3Bucket, S3Error, type S3Settings } from 'busbar/sdk/s3'
import { type BackupStorage, StorageError } from '../api.js'

interface Options {
  readonly signal: AbortSignal
}

/** A bucket. */
export class S3Storage implements BackupStorage {
  readonly #bucket: S3Bucket

  constructor(settings: S3Settings, options?: BucketOptions) {
    this.#bucket = new S3Bucket(settings, options)
  }

  async put(key: string, content: AsyncIterable<Buffer>, options: Options): Promise<void> {
    await saying(async () => await this.#bucket.put(key, content, options))
  }

  async get(key: string, options: Options & { readonly from?: number }): Promise<AsyncIterable<Buffer>> {
    return inWords(this.#bucket.chunks(key, options))
  }

  async size(key: string, options: Options): Promise<number | null> {
    return await saying(async () => await this.#bucket.size(key, options))
  }

  async remove(key: string, options: Options): Promise<void> {
    await saying(async () => {
      await this.#bucket.removeParts(key, options)
      await this.#bucket.remove(key, options)
    })
  }

  async test(options: Options): Promise<void> {
    await saying(async () => await this.#bucket.test(options))
  }

  async free(): Promise<null> {
    return null
  }
}

async function saying<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw worded(error)
  }
}

async function* inWords(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks
  } catch (error) {
    throw worded(error)
  }
}

const worded = (error: unknown): unknown =>
  error instanceof S3Error ? new StorageError(error.message, { cause: error }) : error
