import type { ApplicationSource, BuildType } from 'busbar/api/applications'
import type { Variable } from 'busbar/api/environment'
import type { ImageInfo } from 'busbar/api/runtime-docker'
import { extensionPoint, service } from 'busbar/sdk'

/** One line of a build: what the record keeps and the `build-logs` channel carries. */
export interface BuildLogLine {
  readonly level: 'debug' | 'info' | 'warning' | 'error'
  /** Set for a program's own output; absent for the platform's words. */
  readonly stream?: 'stdout' | 'stderr'
  readonly msg: string
}

export interface BuildContext {
  log(line: BuildLogLine): void
  readonly signal: AbortSignal
}

export interface Commit { readonly sha: string, readonly message: string, readonly author: string }

export interface BuildRequest {
  readonly applicationId: string
  readonly deploymentId: string
  readonly projectId: string
  /** A checked-out tree: the repository's root directory for this application. */
  readonly directory: string
  /** Relative to `directory`. */
  readonly dockerfilePath: string
  /** The tag the image must get. */
  readonly tag: string
  readonly variables: readonly Variable[]
  /** The application's choice of an image to build with; null: the builder's default. For those that have one. */
  readonly builderImage: string | null
  /** Buildpacks by reference, in order; empty: detected. For the builder that knows them. */
  readonly customBuildpacks: readonly string[]
  /** An empty directory for files of the builder's own; gone when the build ends. */
  readonly scratch: string
  /** Use nothing that an earlier build of this application has left: its cache was cleared. */
  readonly noCache: boolean
}

/** What an application's builds keep so that the next one is faster, in bytes that clearing would free. */
export interface CacheSizes {
  readonly buildBytes: number
  /** Kept for the image itself rather than for the next build: layers that buildpacks add at launch. */
  readonly launchBytes: number
}

export interface BuilderCache {
  sizes(applicationId: string): Promise<CacheSizes>
  /** Must leave alone what runs, what belongs to others, and what was not made by this platform. */
  clear(applicationId: string): Promise<void>
}

/** Turns a source tree into an image. Contributed under the name of a `build_type`. */
export interface Builder {
  build(request: BuildRequest, context: BuildContext): Promise<ImageInfo>
  /** Why it cannot build on this machine now, with the remedy; null when it can. Absent: it always can. */
  unavailable?(): Promise<string | null>
  /** What it keeps apart from images on the engine, which are counted and cleared for every builder. */
  readonly cache?: BuilderCache
}
export const builders = extensionPoint<Builder>('builds.builders')

export interface ImageRequest {
  readonly applicationId: string
  readonly deploymentId: string
  readonly projectId: string
  readonly slug: string
  readonly source: ApplicationSource
  readonly buildType: BuildType
  /** As in `BuildRequest`. */
  readonly builderImage: string | null
  readonly customBuildpacks: readonly string[]
  readonly variables: readonly Variable[]
  /** Check out exactly this commit instead of the branch's newest. */
  readonly commit?: string
}

export interface PreparedImage {
  /** What a container is created from, and what a rollback can use again: a tag, or a digest. */
  readonly reference: string
  readonly image: ImageInfo
}

/**
 * From an application's source to an image on the engine: clone and build, or pull and pin.
 * Rejects with a `Problem` whose message says the cause and the remedy.
 */
export interface ImagePreparation {
  prepare(request: ImageRequest, context: BuildContext & { onCommit(commit: Commit): Promise<void> }): Promise<PreparedImage>
}
export const imagePreparation = service<ImagePreparation>('builds.images')
