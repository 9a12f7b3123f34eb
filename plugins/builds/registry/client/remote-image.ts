import type { Readable } from 'node:stream'
import type { RegistryReader } from './registry-reader.js'
import type { UnpackBudget } from './unpack-budget.js'

export interface RemoteLayer {
  /** Of its packed bytes, `sha256:…`, and how many they are. */
  readonly digest: string
  readonly size: number
  /** Of what they unpack to. */
  readonly diffId: string
}

/** An image as its registry describes it, for one kind of machine. */
export interface RemoteImage {
  /** Of what the name stands for, an index or a manifest: with the name, `name@sha256:…` finds the same again. */
  readonly digest: string
  readonly manifestDigest: string
  /** The id that the engine gives the image. */
  readonly configDigest: string
  readonly config: Buffer
  /** What its configuration says that it is made for: `linux/amd64`, `linux/arm/v7`. Not of a manifest without a list: may be another than was asked for. */
  readonly platform: string
  /** Lowest first. */
  readonly layers: readonly RemoteLayer[]
}

/** `platform`: `linux/amd64`, `linux/arm64`, `linux/arm/v7`. Rejects with a `Problem`, or the reason of the reader's signal. */
export async function describeImage(
  _reader: RegistryReader,
  _reference: string,
  _platform: string
): Promise<RemoteImage> {
  throw new Error('not yet')
}

/**
 * Its packed bytes, exactly `size`. Ends well only when they and what they unpack to have the digests of the layer; else
 * it fails with a `Problem`, or the reason of the reader's signal. Destroy it to stop.
 */
export function openLayer(_reader: RegistryReader, _layer: RemoteLayer, _budget: UnpackBudget): Readable {
  throw new Error('not yet')
}
