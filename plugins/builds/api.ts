import type { ApplicationSource } from 'busbar/api/applications'
import type { Variable } from 'busbar/api/environment'
import type { ImageInfo, StepProgress } from 'busbar/api/images'
import { extensionPoint, type Problem, type SecretScope, service } from 'busbar/sdk'

/** One line of a build: what the record keeps and the `build-logs` channel carries. */
export interface BuildLogLine {
  readonly level: 'debug' | 'info' | 'warning' | 'error'
  /** Set for a program's own output; absent for the platform's words. */
  readonly stream?: 'stdout' | 'stderr'
  readonly msg: string
}

/** What carries out the commands of a build: the engine of the platform itself, or one that the project has to itself. */
export type BuildEngineKind = 'classic' | 'buildkit' | 'dockerd'

export interface BuildContext {
  log(line: BuildLogLine): void
  readonly signal: AbortSignal
  /** Called when a step begins and when it ends. Builders that know no steps leave it; who needs none gives none. */
  onStep?(step: StepProgress): void
  /** Called once the builder has chosen, before the first command. */
  onEngine?(engine: BuildEngineKind): Promise<void>
}

export interface Commit {
  readonly sha: string
  readonly message: string
  readonly author: string
}

export interface BuildRequest {
  readonly applicationId: string
  readonly deploymentId: string
  readonly projectId: string
  /** A checked-out tree: the repository's root directory for this application. */
  readonly directory: string
  /** Relative to `directory`. */
  readonly dockerfilePath: string
  /** The stage of it that is to become the image, by name or number; absent: the last one. */
  readonly target?: string
  /**
   * What kind of machine the image is to be made for, `linux/arm64`; absent: the one that runs it. What a builder makes
   * is compared with it, so one that knows no other machine may leave it.
   */
  readonly platform?: string
  /** The tag the image must get. */
  readonly tag: string
  /** The hard caps of this build; absent: those of every build. */
  readonly limits?: BuildLimits
  readonly variables: readonly Variable[]
  /** The application's choice of an image to build with; null: the builder's default. For those that have one. */
  readonly builderImage: string | null
  /** Buildpacks by reference, in order; empty: detected. For the builder that knows them. */
  readonly customBuildpacks: readonly string[]
  /** An empty directory for files of the builder's own; gone when the build ends. */
  readonly scratch: string
  /** The application's deploy key as a file of OpenSSH, for steps that read other repositories by it; absent: it has none. It must stay nowhere. */
  readonly sshKey?: string
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

/** Turns a source tree into an image. Contributed under the name of a `build_type`, which applications can choose while it is there. */
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
  /** The key of a builder; of an image it says nothing. */
  readonly buildType: string
  /** As in `BuildRequest`. */
  readonly builderImage: string | null
  readonly customBuildpacks: readonly string[]
  readonly variables: readonly Variable[]
  /** Check out exactly this commit instead of the branch's newest. */
  readonly commit?: string
  /** What the admission granted; absent: what a build usually gets. */
  readonly limits?: BuildLimits
}

export interface PreparedImage {
  /** What the record shows, and what a rollback finds it by: a tag, or `name@sha256:…`. */
  readonly reference: string
  /** What a container is created from: a name that only the platform knows, where it was fetched. */
  readonly name: string
  readonly image: ImageInfo
}

export interface PreparationContext extends BuildContext {
  onCommit(commit: Commit): Promise<void>
  /**
   * Of the log's writer: what must not show in it is added here before the first line. Lines come as they are, and
   * are cleaned by this where they are kept: of a loud build most are dropped.
   */
  readonly secrets: Pick<SecretScope, 'redact' | 'clean'>
}

/**
 * From an application's source to an image on the engine: clone and build, or pull and pin.
 * Rejects with a `Problem` whose message says the cause and the remedy.
 */
export interface ImagePreparation {
  prepare(request: ImageRequest, context: PreparationContext): Promise<PreparedImage>
}
export const imagePreparation = service<ImagePreparation>('builds.images')

/** Images that were prepared before, by the reference that the record of a deployment keeps. */
export interface PreparedImages {
  /** Undefined when it is not on the engine any more. */
  find(applicationId: string, reference: string): Promise<PreparedImage | undefined>
  /**
   * Deployments of the application need these, and no others any more. What was fetched for the others goes,
   * once no other application keeps it and no build has asked for it lately. References of images that were built are ignored.
   */
  keep(applicationId: string, references: readonly string[]): Promise<void>
  /** What was fetched and is kept for applications. */
  fetched(): Promise<readonly KeptFetch[]>
  /**
   * A disk is short, and the application does without this one: it goes now, unless it was fetched and another application keeps it.
   * 409 E_IMAGE_IN_USE.
   */
  release(applicationId: string, reference: string): Promise<void>
}
/** An image that was fetched, and an application that keeps it. */
export interface KeptFetch {
  readonly applicationId: string
  /** As in `PreparedImage`. */
  readonly reference: string
  readonly name: string
}
export const preparedImages = service<PreparedImages>('builds.prepared')

/** What builds leave on the engine beside their images: the steps of other stages, and of builds that failed. */
export interface BuildCachePruner {
  /**
   * Removes what the next build is unlikely to begin with: keeps the stages of the latest build that succeeded,
   * and the newest of those that failed since. Not while one of the application is running: its steps may be among them.
   */
  prune(applicationId: string): Promise<void>
}
export const buildCachePruner = service<BuildCachePruner>('builds.cache-pruner')

/**
 * Which images that were built are nothing but a cache for the next build of their application: those of deployments that
 * failed or were cancelled. By their tags; they go when a disk is short. Must not wait for anything but the database.
 */
export interface CachedImages {
  tags(): Promise<readonly string[]>
}
export const cachedImages = extensionPoint<CachedImages>('builds.cached-images')

/** Hard caps of one build. Swap is never added. */
export interface BuildLimits {
  readonly memoryBytes: number
  readonly cpus: number
}

/** A build that has not begun. */
export interface WaitingBuild {
  readonly id: string
  readonly projectId: string
  /** The owner of the project; absent: the project counts as an owner of its own. */
  readonly ownerId?: string
  /** When it was asked for. */
  readonly since: Date
}
export interface RunningBuild {
  readonly id: string
  readonly projectId: string
  readonly ownerId?: string
  /** What it was promised. */
  readonly memoryBytes: number
}
export interface BuildQueue {
  readonly waiting: readonly WaitingBuild[]
  readonly running: readonly RunningBuild[]
  /** When the latest build of each project, and of each owner, was admitted; those of long ago may be left out. */
  readonly lastAdmitted: ReadonlyMap<string, Date>
}

/** `builds`: as many run as may at once. `turn`: another one comes first. `disk`: room is being made on it. */
export type WaitCause = 'builds' | 'turn' | 'memory' | 'pressure' | 'disk'
export type AdmissionVerdict =
  /** `note` says what is unusual about it, for its log. */
  | { readonly kind: 'admit'; readonly limits: BuildLimits; readonly note: string | null }
  /** `reason` is fit for a reader: "waiting for 1.2 GiB of memory: 2 builds are running". */
  | { readonly kind: 'wait'; readonly cause: WaitCause; readonly reason: string }
  /** Waiting would not help: 409 E_BUILD_DISK_SHORT, 409 E_BUILD_WAIT. */
  | { readonly kind: 'refuse'; readonly problem: Problem }

/**
 * Says which builds may begin, so that together they leave the platform and the applications what they need.
 * The queue of builds asks before it calls `ImagePreparation.prepare` for a repository, one process at a
 * time, and again whenever a build has ended; it passes the granted limits on. A pull needs no admission.
 */
export interface BuildAdmission {
  /** By the id of each build that waits. Admitted ones must count as running from then on. */
  decide(queue: BuildQueue): Promise<ReadonlyMap<string, AdmissionVerdict>>
}
export const buildAdmission = service<BuildAdmission>('builds.admission')

/** Of the disk on which the engine keeps images, containers and volumes. */
export interface EngineDisk {
  /** By its bytes, or by its inodes where those end first. */
  readonly freeBytes: number
  /** With less, nothing is built or pulled. */
  readonly floorBytes: number
  /** Absent where they do not end. */
  readonly inodes?: {
    readonly free: number
    /** What one counts as: its share of the disk. */
    readonly bytesEach: number
  }
}

export interface EngineDiskReader {
  /** Undefined where the engine is on another machine, or away. */
  read(): Promise<EngineDisk | undefined>
  /** Removes what is only a cache, unless that was done a moment ago. Resolves when it has gone, or after ten seconds. */
  makeRoom(): Promise<void>
  /** What the build engines of projects hold on it, as last known where that cannot be told soon. */
  caches(): Promise<readonly HeldCache[]>
}
/** Of a project. */
export interface HeldCache {
  readonly projectId: string
  readonly bytes: number
}
export const engineDisk = service<EngineDiskReader>('builds.engine-disk')
