import type { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import { withTimeLimit } from 'busbar/sdk'
import { type Remote, RemoteError, type RemoteObject, type RemoteSettings } from './remote.js'
import { remoteFailure } from './remote-failure.js'

/** The client takes a while to load and some memory: only who has a remote pays for it. */
const loadSdk = async () => await import('@aws-sdk/client-s3')
type Sdk = Awaited<ReturnType<typeof loadSdk>>

/** 10 000 parts are the most that a store takes: 160 GiB. */
const partBytes = 16 * 1024 * 1024
const connectMs = 15_000
/** How long a connection may move no byte. */
const silenceMs = 60_000
const attempts = 5
const abortMs = 20_000

interface Options {
  readonly signal: AbortSignal
}

/** A bucket of Amazon S3 or of a store that speaks its protocol. */
export class S3Remote implements Remote {
  readonly #settings: RemoteSettings
  readonly #host: string

  constructor(settings: RemoteSettings) {
    this.#settings = settings
    this.#host = settings.endpoint === '' ? `s3.${settings.region}.amazonaws.com` : settings.endpoint
  }

  /** In parts of which one is held, and each of which is sent again when a request fails. */
  async put(key: string, content: Readable, { signal }: Options): Promise<void> {
    const { bucket: Bucket } = this.#settings
    await this.#with(signal, async (client, sdk) => {
      const parts = partsOf(content)
      const first = await parts.next()
      const head = first.done === true ? Buffer.alloc(0) : first.value
      const second = await parts.next()
      if (second.done === true) {
        await client.send(new sdk.PutObjectCommand({ Bucket, Key: key, Body: head }), { abortSignal: signal })
        return
      }
      const begun = await client.send(new sdk.CreateMultipartUploadCommand({ Bucket, Key: key }), {
        abortSignal: signal
      })
      const UploadId = begun.UploadId
      if (UploadId === undefined) throw new RemoteError(`${this.#host} has not begun an upload`)
      try {
        const done: Array<{ PartNumber: number; ETag: string | undefined }> = []
        const send = async (Body: Buffer): Promise<void> => {
          const PartNumber = done.length + 1
          const { ETag } = await client.send(
            new sdk.UploadPartCommand({ Bucket, Key: key, UploadId, PartNumber, Body }),
            { abortSignal: signal }
          )
          done.push({ PartNumber, ETag })
        }
        await send(head)
        await send(second.value)
        for await (const part of parts) await send(part)
        await client.send(
          new sdk.CompleteMultipartUploadCommand({
            Bucket,
            Key: key,
            UploadId,
            MultipartUpload: { Parts: done }
          }),
          { abortSignal: signal }
        )
      } catch (error) {
        // Beyond the abort of the upload, which may be why it failed.
        const command = new sdk.AbortMultipartUploadCommand({ Bucket, Key: key, UploadId })
        await withTimeLimit(
          { ms: abortMs },
          async abortSignal => await client.send(command, { abortSignal })
        ).catch(() => {})
        throw error
      }
    }).finally(() => {
      content.destroy()
    })
  }

  async get(key: string, { signal }: Options): Promise<Readable> {
    const { client, sdk } = await this.#open()
    try {
      const { Body } = await client.send(
        new sdk.GetObjectCommand({ Bucket: this.#settings.bucket, Key: key }),
        { abortSignal: signal }
      )
      const stream = Body as Readable
      stream.once('close', () => {
        client.destroy()
      })
      return stream
    } catch (error) {
      client.destroy()
      throw this.#failure(error, signal)
    }
  }

  async remove(key: string, { signal }: Options): Promise<void> {
    await this.#with(signal, async (client, sdk) => {
      await client.send(new sdk.DeleteObjectCommand({ Bucket: this.#settings.bucket, Key: key }), {
        abortSignal: signal
      })
    })
  }

  async removeParts(key: string, { signal }: Options): Promise<void> {
    const { bucket: Bucket } = this.#settings
    await this.#with(signal, async (client, sdk) => {
      const { Uploads = [] } = await client.send(
        new sdk.ListMultipartUploadsCommand({ Bucket, Prefix: key }),
        { abortSignal: signal }
      )
      for (const { Key, UploadId } of Uploads)
        if (Key === key)
          await client.send(new sdk.AbortMultipartUploadCommand({ Bucket, Key, UploadId }), {
            abortSignal: signal
          })
    })
  }

  async *list(prefix: string, { signal }: Options): AsyncGenerator<RemoteObject> {
    const { client, sdk } = await this.#open()
    try {
      let ContinuationToken: string | undefined
      do {
        const page = await client.send(
          new sdk.ListObjectsV2Command({ Bucket: this.#settings.bucket, Prefix: prefix, ContinuationToken }),
          { abortSignal: signal }
        )
        for (const { Key, Size = 0 } of page.Contents ?? [])
          if (Key !== undefined) yield { key: Key, bytes: Size }
        ContinuationToken = page.IsTruncated === true ? page.NextContinuationToken : undefined
      } while (ContinuationToken !== undefined)
    } catch (error) {
      throw this.#failure(error, signal)
    } finally {
      client.destroy()
    }
  }

  async test({ signal }: Options): Promise<void> {
    await this.#with(signal, async (client, sdk) => {
      await client.send(new sdk.HeadBucketCommand({ Bucket: this.#settings.bucket }), { abortSignal: signal })
    })
  }

  async #with(signal: AbortSignal, run: (client: S3Client, sdk: Sdk) => Promise<void>): Promise<void> {
    signal.throwIfAborted()
    const { client, sdk } = await this.#open()
    try {
      await run(client, sdk)
    } catch (error) {
      throw this.#failure(error, signal)
    } finally {
      client.destroy()
    }
  }

  #failure(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason
    return remoteFailure(error, { ...this.#settings, host: this.#host })
  }

  async #open(): Promise<{ readonly client: S3Client; readonly sdk: Sdk }> {
    const sdk = await loadSdk()
    const { region, useSsl, accessKey, secretKey, endpoint } = this.#settings
    const client = new sdk.S3Client({
      endpoint: `${useSsl ? 'https' : 'http'}://${this.#host}`,
      region,
      // A bucket with a host of its own is a thing of Amazon's.
      forcePathStyle: endpoint !== '' && !endpoint.endsWith('.amazonaws.com'),
      credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
      maxAttempts: attempts,
      // Stores other than Amazon's refuse the checksums that the client adds by itself; archives have their own.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: connectMs, socketTimeout: silenceMs }
    })
    return { client, sdk }
  }
}

/** All but the last have the same length. */
async function* partsOf(content: Readable): AsyncGenerator<Buffer> {
  let held: Buffer[] = []
  let bytes = 0
  for await (const chunk of content as AsyncIterable<Buffer>) {
    let rest = chunk
    while (bytes + rest.length >= partBytes) {
      const room = partBytes - bytes
      yield Buffer.concat([...held, rest.subarray(0, room)], partBytes)
      rest = rest.subarray(room)
      held = []
      bytes = 0
    }
    if (rest.length > 0) {
      held.push(rest)
      bytes += rest.length
    }
  }
  if (bytes > 0) yield Buffer.concat(held, bytes)
}
