import type { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import type { Clock } from '../kernel.js'
import { withTimeLimit } from '../time-limit.js'
import { boundAnswers } from './bounded-answers.js'
import { s3Failure } from './failure.js'
import { guardedAgents } from './guarded-agents.js'
import { type PartPlan, partsOf, planFor } from './parts.js'
import { patiently } from './patience.js'
import { S3Error, type S3Object, type S3Settings } from './settings.js'

/** The client takes a while to load and some memory: only who has a remote pays for it. */
const loadSdk = async () => {
  // Its version is pinned to one that runs here: what it says of later ones is nothing for operators.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true'
  return await import('@aws-sdk/client-s3')
}
type Sdk = Awaited<ReturnType<typeof loadSdk>>

const connectMs = 15_000
/** How long a store is waited for. */
interface Waits {
  /** How long a connection may move no byte. */
  readonly silenceMs: number
  /** One request, from its first byte to the head of its answer. */
  readonly requestMs: number
  /** How long a store may be away in the middle of an upload: what was sent before would be lost with it. */
  readonly awayMs: number
}
/** A part at 56 KB a second, and one of the longest at 224. */
const usualWaits: Waits = { silenceMs: 60_000, requestMs: 300_000, awayMs: 120_000 }
/** How long an object may keep who reads it waiting: this, and for each byte what it takes at 32 KiB a second. */
const readingMs = 120_000
const slowestBytesPerMs = 32.768
const attempts = 5
const abortMs = 20_000

interface Options {
  readonly signal: AbortSignal
}

export interface BucketOptions {
  /** Tells how long a store keeps who reads waiting. Default: the time of the machine. */
  readonly clock?: Pick<Clock, 'elapsed'>
  /** Default: what the host takes. */
  readonly plan?: PartPlan
  /** Default: a minute without a byte, five for a request, and two for one that is away. */
  readonly waits?: Partial<Waits>
}

/** A bucket of Amazon S3 or of a store that speaks its protocol. */
export class S3Bucket {
  readonly #settings: S3Settings
  readonly #host: string
  readonly #plan: PartPlan
  readonly #waits: Waits
  readonly #clock: Pick<Clock, 'elapsed'>

  constructor(settings: S3Settings, { clock, plan, waits }: BucketOptions = {}) {
    this.#settings = settings
    this.#host = settings.endpoint === '' ? `s3.${settings.region}.amazonaws.com` : settings.endpoint
    this.#plan = plan ?? planFor(this.#host)
    this.#waits = { ...usualWaits, ...waits }
    this.#clock = clock ?? { elapsed: () => performance.now() }
  }

  /**
   * Stores what `content` gives until its end: whole, or not at all. In parts, of which one is sent while the next is filled. A part
   * that fails is sent again, and an upload goes on where it was when a store comes back that was away for up to two minutes. What is
   * longer than 10 000 parts of its length take (484 GiB; 312 GiB at Cloudflare R2) fails: at once where `bytes` says how long it is.
   */
  async put(
    key: string,
    content: AsyncIterable<Buffer>,
    { signal, bytes: known = 0 }: Options & { readonly bytes?: number }
  ): Promise<void> {
    if (known > this.#plan.longest) throw this.#tooLong()
    const { bucket: Bucket } = this.#settings
    let fault: { readonly error: unknown } | undefined
    const given = async function* (): AsyncGenerator<Buffer> {
      try {
        yield* content
      } catch (error) {
        fault = { error }
        throw error
      }
    }
    const plan = this.#plan
    const parts = partsOf(given(), plan)
    const patience = { signal, awayMs: this.#waits.awayMs }
    try {
      await this.#with(signal, async (client, sdk) => {
        const first = await parts.next()
        const head = first.done === true ? Buffer.alloc(0) : first.value
        if (head.length < plan.bytesOf(1)) {
          await client.send(new sdk.PutObjectCommand({ Bucket, Key: key, Body: head }), {
            abortSignal: signal
          })
          return
        }
        const begun = await client.send(new sdk.CreateMultipartUploadCommand({ Bucket, Key: key }), {
          abortSignal: signal
        })
        const UploadId = begun.UploadId
        if (UploadId === undefined) throw new S3Error(`${this.#host} has not begun an upload`)
        try {
          const done: Array<{ PartNumber: number; ETag: string | undefined }> = []
          let bytes = 0
          const send = async (Body: Buffer, PartNumber: number): Promise<void> => {
            const command = new sdk.UploadPartCommand({ Bucket, Key: key, UploadId, PartNumber, Body })
            const { ETag } = await patiently(
              patience,
              async () => await client.send(command, { abortSignal: signal })
            )
            done.push({ PartNumber, ETag })
            bytes += Body.length
          }
          let number = 1
          let sending = send(head, number)
          // It is awaited, though later.
          sending.catch(() => {})
          for await (const part of parts) {
            await sending
            if (number === plan.parts) throw this.#tooLong()
            sending = send(part, ++number)
            sending.catch(() => {})
            // The next one is filled where this one is.
            if (plan.takesAll(number + 1)) await sending
          }
          await sending
          const command = new sdk.CompleteMultipartUploadCommand({
            Bucket,
            Key: key,
            UploadId,
            MultipartUpload: { Parts: done }
          })
          await patiently(patience, async () => await client.send(command, { abortSignal: signal })).catch(
            async (error: unknown) => {
              // One that was done, and whose answer was lost, is no upload any more when it is asked for again.
              if (!isNoUpload(error) || (await this.size(key, { signal })) !== bytes) throw error
            }
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
      })
    } catch (error) {
      // What fails in the content is no fault of the store.
      throw fault === undefined || signal.aborted ? error : fault.error
    } finally {
      // Who gives the content hears that nobody takes any more of it.
      await parts.return(undefined).catch(() => {})
    }
  }

  /** From the byte `from` on. */
  async get(key: string, { signal, from = 0 }: Options & { readonly from?: number }): Promise<Readable> {
    const { client, sdk } = await this.#open()
    try {
      const { Body } = await client.send(
        new sdk.GetObjectCommand({
          Bucket: this.#settings.bucket,
          Key: key,
          ...(from > 0 ? { Range: `bytes=${from}-` } : {})
        }),
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

  /** The same, piece by piece; what fails on the way is an `S3Error` too. */
  async *chunks(key: string, options: Options & { readonly from?: number }): AsyncGenerator<Buffer> {
    const stream = await this.get(key, options)
    let waited = 0
    let bytes = 0
    let since = this.#clock.elapsed()
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        waited += this.#clock.elapsed() - since
        bytes += chunk.length
        // A store that gives a byte now and then would hold its reader for days.
        if (waited > readingMs + bytes / slowestBytesPerMs)
          throw new S3Error(
            `${this.#host} gives the object too slowly: ${bytes} bytes in ${Math.round(waited / 1000)} s`
          )
        yield chunk
        since = this.#clock.elapsed()
      }
    } catch (error) {
      throw this.#failure(error, options.signal)
    }
  }

  /** How long the object is; null where there is none. */
  async size(key: string, { signal }: Options): Promise<number | null> {
    let bytes: number | null = null
    await this.#with(signal, async (client, sdk) => {
      const command = new sdk.HeadObjectCommand({ Bucket: this.#settings.bucket, Key: key })
      bytes = await client.send(command, { abortSignal: signal }).then(
        ({ ContentLength = 0 }) => ContentLength,
        (error: unknown) => {
          if (statusOf(error) === 404) return null
          throw error
        }
      )
    })
    return bytes
  }

  /** Nothing there is no failure. */
  async remove(key: string, { signal }: Options): Promise<void> {
    await this.#with(signal, async (client, sdk) => {
      await client.send(new sdk.DeleteObjectCommand({ Bucket: this.#settings.bucket, Key: key }), {
        abortSignal: signal
      })
    })
  }

  /** Takes away what uploads of that key have left half. */
  async removeParts(key: string, { signal }: Options): Promise<void> {
    const { bucket: Bucket } = this.#settings
    await this.#with(signal, async (client, sdk) => {
      const { Uploads = [] } = await client
        .send(new sdk.ListMultipartUploadsCommand({ Bucket, Prefix: key }), { abortSignal: signal })
        .catch((error: unknown) => {
          // Some stores keep no list of them, and take them away by themselves.
          if (statusOf(error) === 405 || statusOf(error) === 501) return { Uploads: [] }
          throw error
        })
      for (const { Key, UploadId } of Uploads)
        if (Key === key)
          await client.send(new sdk.AbortMultipartUploadCommand({ Bucket, Key, UploadId }), {
            abortSignal: signal
          })
    })
  }

  async *list(prefix: string, { signal }: Options): AsyncGenerator<S3Object> {
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

  /** Resolves when the bucket is there and lets these keys in. */
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

  #tooLong(): S3Error {
    const most = Math.floor(this.#plan.longest / 2 ** 30)
    return new S3Error(
      `it is longer than ${most} GiB, the most that is uploaded to ${this.#host}: keep it on a disk, or make it smaller`
    )
  }

  #failure(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason
    return s3Failure(error, { ...this.#settings, host: this.#host })
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
      requestHandler: {
        connectionTimeout: connectMs,
        socketTimeout: this.#waits.silenceMs,
        requestTimeout: this.#waits.requestMs,
        throwOnRequestTimeout: true,
        ...guardedAgents(this.#settings, this.#host)
      }
    })
    boundAnswers(client)
    return { client, sdk }
  }
}

const isNoUpload = (error: unknown): boolean => error instanceof Error && error.name === 'NoSuchUpload'

const statusOf = (error: unknown): number | undefined =>
  (error as { readonly $metadata?: { readonly httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode
