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
}

/** Turns a source tree into an image. Contributed under the name of a `build_type`. */
export interface Builder { build(request: BuildRequest, context: BuildContext): Promise<ImageInfo> }
export const builders = extensionPoint<Builder>('builds.builders')

export interface ImageRequest {
  readonly applicationId: string
  readonly deploymentId: string
  readonly projectId: string
  readonly slug: string
  readonly source: ApplicationSource
  readonly buildType: BuildType
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
