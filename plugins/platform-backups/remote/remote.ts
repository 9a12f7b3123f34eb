import type { Readable } from 'node:stream'

/** Where archives are kept besides this machine: a bucket of a store that speaks the protocol of S3. */
export interface RemoteSettings {
  /** A host with its port where it has one, without scheme; '' is Amazon's own of the region. */
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  /** Before each name: `busbar/`. */
  readonly prefix: string
  readonly useSsl: boolean
  readonly accessKey: string
  readonly secretKey: string
}

export interface RemoteObject {
  readonly key: string
  readonly bytes: number
}

interface Options {
  readonly signal: AbortSignal
}

/** A place that keeps objects by key. What fails is a `RemoteError`, or the reason of the signal. */
export interface Remote {
  /** Stores what `content` gives until its end, in bounded memory: whole, or not at all. */
  put(key: string, content: Readable, options: Options): Promise<void>
  get(key: string, options: Options): Promise<Readable>
  /** Takes away the object, and what an upload of that key has left half. Nothing there is no failure. */
  remove(key: string, options: Options): Promise<void>
  /** Takes away what uploads of that key have left half. */
  removeParts(key: string, options: Options): Promise<void>
  list(prefix: string, options: Options): AsyncIterable<RemoteObject>
  /** Resolves when the bucket is there and lets these keys in. */
  test(options: Options): Promise<void>
}

/** In a sentence what the store did not do, and what helps. It has no secrets. */
export class RemoteError extends Error {}
