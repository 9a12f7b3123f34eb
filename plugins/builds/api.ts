import type { ApplicationSource } from 'busbar/api/applications'
import type { Variable } from 'busbar/api/environment'
import type { ImageInfo, StepProgress } from 'busbar/api/images'
import {
  type Clock,
  extensionPoint,
  isProblem,
  type OptionalHandle,
  type Problem,
  type SecretScope,
  service
} from 'busbar/sdk'

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
  /** Called when a step begins and when it ends. Builders that know no steps leave it; who needs none gives none. */
  onStep?(step: StepProgress): void
  /**
   * What carries out the commands: `classic`, the engine of the platform itself, or the kind of a build engine. Called once the
   * builder has chosen, before the first command.
   */
  onEngine?(engine: string): void
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

/** How the names of volumes begin in which the build engines of projects keep what they have built, and what they may need again. */
export const builderVolumePrefix = 'busbar-builder-'
/** The same of what buildpacks keep for the next build of an application, and of the layers that they add at launch. */
export const buildpacksVolumePrefixes = { build: 'busbar-cnb-cache-', launch: 'busbar-cnb-launch-' } as const

/** What a program in a build engine is told to build. Paths are those of the engine's container. */
export interface ProgramBuild {
  /** A folder of this build alone. In it: `context/`, `dockerfile/`, and, when it has ended well, `out/`. */
  readonly directory: string
  /** What is read of `dockerfile/`. */
  readonly file: string
  /**
   * The image of a front-end that reads it instead of the engine, which reads Dockerfiles. It may ask the engine for whatever
   * there is, so it is the choice of a builder, and never what a file or a variable of an application says.
   */
  readonly frontEnd?: string
  readonly buildArgs: Readonly<Record<string, string>>
  /** By the id that a mount names. */
  readonly secrets: Readonly<Record<string, string>>
  /** A file of OpenSSH, whose key signs for the steps that mount it; absent: none does. */
  readonly sshKey?: string
  readonly target?: string
  /** `linux/arm64`. */
  readonly platform?: string
  readonly noCache: boolean
  readonly bases: readonly EngineBase[]
  /** Names that may be of images, and that none was put into the build engine for. */
  readonly missing: readonly string[]
}

/** An image that was put into the build engine, as its operator has it on the engine of the platform. */
export interface EngineBase {
  /** As a Dockerfile may write it. */
  readonly name: string
  /** `sha256:…`: of its manifest where it lies as a layout, else of its configuration. */
  readonly digest: string
  /** The folder in which it lies, as the program takes it. */
  readonly directory: string
  /** What it is made for, `linux/amd64`, where that is not what the build is for: other stages take it from its registry. */
  readonly foreignTo?: string
}

/** A command in the container, without a shell of ours in between. */
export interface EngineCommand {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/**
 * How an image is laid out that a build has made, or that is given to one. `layout`: as the OCI says, with `index.json` and
 * `blobs/`; `archive`: as `docker save` writes it, with `manifest.json`.
 */
export type EngineImageLayout = 'layout' | 'archive'

/** What `pack` is told to build. Paths are those of the engine's container, images those of the engine in it. */
export interface BuildpacksBuild {
  /** As in `ProgramBuild`; in it: `context/`, `home/`, `tmp/`, and, when it has ended well, `out/`. Its last part is the deployment. */
  readonly directory: string
  /** The file of `pack`. */
  readonly tool: string
  readonly builder: string
  readonly runImage?: string
  readonly lifecycleImage?: string
  readonly buildpacks: readonly string[]
  /** Of the application: `args` name those in `env`. */
  readonly variables: {
    readonly args: readonly string[]
    readonly env: Readonly<Record<string, string>>
  }
  /** Volumes of the application. */
  readonly caches: { readonly build: string; readonly launch: string }
  readonly noCache: boolean
}

/**
 * How `pack` is run beside an engine. Images have names of ours in it: none of those that `pack` trusts, whose buildpacks it lets
 * reach the engine, and none that means something else since it came there.
 */
export interface BuildpacksProgram {
  /** Of a base that was put into the engine. */
  nameOfBase(digest: string): string
  nameBase(digest: string): EngineCommand
  /** Of an image that the engine has pulled. */
  nameOfPulled(reference: string): string
  /** As everybody may, unless the engine has it by `name`. */
  pull(reference: string, name: string): EngineCommand
  /** Writes into a file what a builder says of itself. */
  describe(name: string, file: string): EngineCommand
  build(build: BuildpacksBuild): EngineCommand
  /** Ends and removes what a build has left in the engine, however it ended. */
  cleanUp(deploymentId: string): EngineCommand
}

/** A program that builds images: its daemon runs in the container of a build engine, and its client is run beside it. */
export interface EngineProgram {
  /** The key under which it is contributed, and what `build_engine` says: `buildkit`. At most 40 of `a-z0-9-`, a letter first. */
  readonly kind: string
  /** As the log says it. */
  readonly name: string
  /** What the container runs, once control groups can be made in it. */
  readonly daemon: EngineCommand
  /** Ends with 0 when the daemon takes builds. */
  readonly ready: EngineCommand
  readonly takes: EngineImageLayout
  readonly makes: EngineImageLayout
  /** Takes in what was put into the folder of a base, once. Absent: it is used from there. */
  addBase?(directory: string): EngineCommand
  build(build: ProgramBuild): EngineCommand
  /** Absent: it is no Docker Engine, of which `pack` could ask for its containers. */
  readonly buildpacks?: BuildpacksProgram
  /** Removes what builds that did not come to their end have left in the daemon itself, but of the deployments that are live. */
  forget?(live: readonly string[]): EngineCommand
  /** Removes what no build uses now, the oldest first, until so many bytes are left of it. */
  prune(keptBytes: number): EngineCommand
}

/**
 * A kind of build engines, contributed under its `kind`. A container of it is started for each project that builds: with the caps of
 * its builds, in the project's network for builds, with one volume and nothing else of the machine. What stands in
 * `build-engine-docker.test.ts` and beside it holds for every kind.
 */
export interface BuildEngineKind {
  readonly program: EngineProgram
  /** Of the container: a name, which may be of a registry. It has `sh` and the programs that the commands name. */
  readonly image: string
  /** `auto` takes the highest of those whose image is there: a BuildKit has 20, a Docker Engine 10. */
  readonly preference: number
  /** `auto` fetches its image where it is not there. */
  readonly isFetched: boolean
}
export const buildEngines = extensionPoint<BuildEngineKind>('builds.engines')

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
  onCommit(commit: Commit): void
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

/** How many bytes of it may be filled before it runs short; null where it is not seen. */
export async function roomOn(disk: OptionalHandle<EngineDiskReader>): Promise<number | null> {
  const seen = await disk.get()?.read()
  return seen === undefined ? null : Math.max(0, seen.freeBytes - seen.floorBytes)
}

/** Of a project. */
export interface HeldCache {
  readonly projectId: string
  readonly bytes: number
}
export const engineDisk = service<EngineDiskReader>('builds.engine-disk')

interface DiskWatchParts {
  readonly clock: Clock
  readonly disk: OptionalHandle<EngineDiskReader>
}

const lookEveryMs = 1000
/** A server of a database needs some forty of these before it answers: with less than that, whatever is made of one fails. */
const fullBytes = 64 * 2 ** 20
const fullWords = 'the disk of the engine is full'
const roomHelps = 'make room on it, and try again'
const saysFull = /no space left on device|disk quota exceeded/i
/** PostgreSQL says the same of memory. */
const saysMemory = /shared memory/i

/**
 * Does something that fills the disk of the engine, and ends it where that runs short: what runs beside it would have no room
 * for what it is told to keep. Nothing is watched where the disk is not seen. What fails by itself says it where the disk is full.
 */
export async function whileThereIsRoom<T>(
  { clock, disk }: DiskWatchParts,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const short = new AbortController()
  const stop = clock.every(lookEveryMs, async () => {
    const seen = await disk
      .get()
      ?.read()
      .catch(() => undefined)
    if (seen !== undefined && seen.freeBytes < seen.floorBytes)
      short.abort(
        new Error(
          `the disk of the engine runs short: ${mebibytes(seen.freeBytes)} MiB are free, and ${mebibytes(seen.floorBytes)} are left for what runs: ${roomHelps}`
        )
      )
  })
  try {
    return await work(AbortSignal.any([signal, short.signal]))
  } catch (error) {
    signal.throwIfAborted()
    short.signal.throwIfAborted()
    throw await onFullDisk(error, disk.get())
  } finally {
    stop()
  }
}

/**
 * Why something on the engine failed, in `words` of its own, which a full disk may be the cause of and not the text. Where it is
 * full, or the words say so, that and what helps come first; otherwise, the words as they are.
 */
export async function withFullDisk(
  words: string,
  disk: Pick<EngineDiskReader, 'read'> | undefined
): Promise<string> {
  if (words.startsWith(fullWords)) return words
  const seen = await disk?.read().catch(() => undefined)
  const isFull = seen !== undefined && seen.freeBytes < fullBytes
  if (!isFull && (!saysFull.test(words) || saysMemory.test(words))) return words
  const left = isFull ? `, but for ${mebibytes(seen.freeBytes)} MiB` : ''
  return `${fullWords}${left}: ${roomHelps}. What failed: ${words}`
}

/** Problems are for the caller as they are. */
async function onFullDisk(error: unknown, disk: EngineDiskReader | undefined): Promise<unknown> {
  if (!(error instanceof Error) || isProblem(error)) return error
  const words = await withFullDisk(error.message, disk)
  return words === error.message ? error : new Error(words, { cause: error })
}

/** Of bytes, rounded down: for people. */
export const mebibytes = (bytes: number): number => Math.floor(bytes / 2 ** 20)
