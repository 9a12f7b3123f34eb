import type { Owner } from 'busbar/api/containers'

export interface ImageInfo {
  readonly id: string
  /** The names that it has on the engine, with their tags. Absent from a builder's result that does not say. */
  readonly repoTags?: readonly string[]
  readonly repoDigests: readonly string[]
  /** The digests of its unpacked layers, lowest first. Absent from a builder's result that does not say. */
  readonly layers?: readonly string[]
  /** TCP ports of EXPOSE, lowest first. */
  readonly exposedPorts: readonly number[]
  readonly sizeBytes: number
  /** Empty without one. Absent from a builder's result that does not say. */
  readonly entrypoint?: readonly string[]
  /** Its ENV, by name. Absent from a builder's result that does not say. */
  readonly environment?: Readonly<Record<string, string>>
  /** Its ONBUILD instructions, which a build on top of it carries out; absent without any. */
  readonly onBuild?: readonly string[]
  /** What each image and container made from it repeats. Absent from a builder's result that does not say. */
  readonly declared?: DeclaredSize
  /** What it is made for, `linux/arm64` or `linux/arm/v7`. Absent from a builder's result that does not say. */
  readonly platform?: string
  /** The same without the variant, where the machine of the engine is of another kind and runs it only by emulation, if at all. */
  readonly foreignPlatform?: string
  /** For whom a platform built it; absent from an image that was pulled or made by hand. */
  readonly builtFor?: Owner
  /** Of one that was just built: where its other stages ended, as short ids. The next build begins with them. */
  readonly stageEnds?: readonly string[]
}

/** How much an image says of itself. */
export interface DeclaredSize {
  /** Of its LABELs, and of its configuration with them. */
  readonly labelBytes: number
  readonly bytes: number
  /** Of SHELL, which stands in the history of each step that is built upon it. */
  readonly shellBytes: number
  /** Of EXPOSE, for every protocol. */
  readonly ports: number
  readonly volumes: number
}

export interface BuiltImage {
  readonly id: string
  readonly tags: readonly string[]
  readonly owner: Owner
}

/** What an image is made of on the disk. What several name is there once, and stays until the last of them goes. */
export interface ImageUse {
  readonly id: string
  readonly names: readonly string[]
  /** For whom this installation has built it, verified. */
  readonly owner?: Owner
  /** The containers that were made from it, of whomever. */
  readonly containerIds: readonly string[]
  /** The lowest first. Of one that could not be looked at in time, those are left out that may be of others, too. */
  readonly parts: ReadonlyArray<{ readonly id: string; readonly bytes: number }>
}

export interface LoadOptions {
  /** Begins with `loadedPrefix`, and the archive names the image so; with `builtFor` any other one, and it names none. */
  readonly name: string
  /**
   * It was made for this owner by a build engine of the platform's, which has given it the labels of
   * `imageLabels(builtFor)`. It is one that was built then, and gets its name when that is certain.
   */
  readonly builtFor?: Owner
  /** For `buildUsage`; `builtFor` unless given. */
  readonly owner?: Owner
  /** A further layer is unpacked, of those that were not held. */
  readonly onLayer?: () => void
  /**
   * The signal has aborted when the engine had the whole archive, which it cannot be told to leave. `ended` resolves when
   * it is done, whether or not the image is there then; it rejects where that is unknown.
   */
  readonly onAbandoned?: (ended: Promise<void>) => void
  readonly signal: AbortSignal
}
