import type { Readable } from 'node:stream'
import { service } from 'busbar/sdk'

/** The labels that name the owner of a thing on the engine. */
export const ownerKeys = {
  projectId: 'project-id',
  applicationId: 'application-id',
  deploymentId: 'deployment-id',
  databaseId: 'database-id'
} as const

/** A label that means something to a platform, or may to a later one. */
export const isReservedLabel = (key: string): boolean =>
  key.startsWith('busbar-') || key === 'managed-by' || Object.values<string>(ownerKeys).includes(key)

/**
 * Whose a thing on the engine is. Everything created carries it in labels and is signed; what the runtime answers
 * is verified, and never only what labels say.
 */
export interface Owner {
  readonly projectId?: string
  readonly applicationId?: string
  readonly deploymentId?: string
  readonly databaseId?: string
}

export interface EngineInfo {
  readonly version: string
  readonly apiVersion: string
  /** What images are made for that it runs: `linux/amd64`. */
  readonly platform: string
  readonly containers: number
  /** Of the engine's machine. */
  readonly cores: number
  readonly memoryBytes: number
  /** Where it keeps images and containers, as a path of its machine. */
  readonly dataRoot: string
  /**
   * `here`: on the platform's machine. `around`: there too, and the platform runs in one of its containers,
   * where its paths mean nothing. `elsewhere`: on a machine that the platform knows by the engine's words alone.
   */
  readonly place: 'here' | 'around' | 'elsewhere'
}

export interface ContainerSpec {
  readonly name: string
  readonly image: string
  readonly owner: Owner
  /** Name of a network from `ensureNetwork`. */
  readonly network: string
  readonly env: Readonly<Record<string, string>>
  /** Instead of the image's CMD. */
  readonly command?: readonly string[]
  /** Instead of the image's ENTRYPOINT, whose CMD then counts no more either. */
  readonly entrypoint?: readonly string[]
  /** Cores; 0 = no limit. */
  readonly cpuLimit: number
  /** Bytes; 0 = no limit. Swap is never added. */
  readonly memoryLimit: number
  /** `minimal` drops every capability; `standard` keeps the engine's default set. */
  readonly caps: 'minimal' | 'standard'
  /** A read-only root gets a tmpfs on /tmp and /run. */
  readonly readonlyRootfs: boolean
  readonly healthCommand?: {
    readonly command: string
    readonly intervalSeconds: number
    readonly timeoutSeconds: number
    readonly retries: number
    readonly startPeriodSeconds: number
  }
  readonly volumes?: ReadonlyArray<{
    readonly volume: string
    readonly path: string
    readonly readOnly?: boolean
  }>
}

export interface ContainerState {
  readonly id: string
  readonly name: string
  readonly image: string
  readonly owner: Owner
  readonly status: 'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead'
  readonly exitCode: number
  readonly oomKilled: boolean
  readonly startedAt: string
  readonly health: 'healthy' | 'unhealthy' | 'starting' | null
  /** The last output of the container's own health check. */
  readonly healthOutput: string | null
  /** The engine's own explanation of a failed start. */
  readonly error: string
}

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

/** A Dockerfile that the platform has written, from one that it has read. */
export interface GeneratedSource {
  /** What its author calls the Dockerfile, for errors. */
  readonly name: string
  /** One for each instruction, in order. */
  readonly steps: ReadonlyArray<{
    /** The instruction, as the engine says it before it carries it out. */
    readonly text: string
    /** The same for a reader of the log. */
    readonly shown: string
    /** In what is handed over, and in what the author has written; from 1. */
    readonly line: number
    readonly sourceLine: number
  }>
}

export interface BuildOptions {
  readonly tag: string
  /** Relative to the context's root. */
  readonly dockerfile: string
  readonly buildArgs: Readonly<Record<string, string>>
  /** The steps run in the network for builds of its project. */
  readonly owner: Owner & { readonly projectId: string }
  /**
   * The Dockerfile sets the labels of `imageLabels(owner)` itself, early, where the cache of the engine keeps
   * them. Otherwise the engine adds them at the end, which costs a step (about 100 ms) each in every build.
   */
  readonly isLabelled?: true
  /**
   * What the engine says of its steps must equal these, else the build ends with 502 E_BUILD_DIFFERS. Its image has no
   * name before that is certain. Errors speak of the author's lines. Goes with `isLabelled`.
   */
  readonly generated?: GeneratedSource
  readonly memoryBytes: number
  readonly cpus: number
  /** Processes and threads of one step; 4096 unless given. */
  readonly processes?: number
  readonly noCache?: boolean
}

/** Codes of an image that did not come which say nothing of it: its registry could not be asked. */
export const registryAwayCodes: readonly string[] = [
  'E_REGISTRY_UNREACHABLE',
  'E_REGISTRY_UNKNOWN',
  'E_REGISTRY_TLS',
  'E_REGISTRY_PLAIN_HTTP',
  'E_REGISTRY_FAILING',
  'E_REGISTRY_ANSWER'
]

/** Swap is never added. `processes`: with threads. */
export interface ContainerCaps {
  readonly memoryBytes: number
  readonly cpus: number
  readonly processes: number
}

/** Steps that no image needs, and that the next build may be glad of. */
export interface KeptSteps {
  /** `stageEnds` of an image: these steps and those before them. */
  readonly ends: readonly string[]
  /** So many of the others, each with the steps before it: the newest that were made after `after`. */
  readonly newest: number
  readonly after: Date
  /** Those newest may take so much together, each beginning with its first step; absent: any. */
  readonly newestBytes?: number
  /** All that was built for these applications. */
  readonly applications?: ReadonlySet<string>
}

/** What a build that is under way has written on the engine, or a load at most. */
export interface BuildUsage {
  readonly owner: Owner
  readonly bytes: number
  /** Of that, what the step that runs holds: the engine copies it when the step ends, and a cancel does not stop that. */
  readonly runningStepBytes: number
  /**
   * It may have written more. A build always: an open file without a name is on the disk, and found by no walk through
   * names; nor are volumes measured, or what the engine copies for COPY until it is there. A load that is unpacked: a
   * layer may be packed better than others are.
   */
  readonly isPartial: boolean
}

export interface BuiltImage {
  readonly id: string
  readonly tags: readonly string[]
  readonly owner: Owner
}

export interface VolumeUsage {
  readonly name: string
  readonly sizeBytes: number
}

/** Registry credentials for one pull. */
export interface RegistryAuth {
  readonly username: string
  readonly password: string
  readonly serveraddress?: string
}

/** `[registry/]name[:tag][@digest]` as the engine takes it: in lower case, but for the host and the tag. */
export const imageReferenceShape =
  /^(?<name>(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:[./]|__?|-+)[a-z0-9]+)*)(?::(?<tag>\w[\w.-]{0,127}))?(?:@(?<digest>sha256:[0-9a-f]{64}))?$/

/**
 * The host, with its port, that an image is pulled from and its credentials are sent to: `docker.io` for
 * `node` and `team/app`, `127.0.0.1:5000` for `127.0.0.1:5000/app`. In lower case, as hosts are compared.
 */
export function registryOf(image: string): string {
  const first = image.split('/', 1)[0] ?? ''
  // Engines since 23 take a name with a capital letter for a host as well.
  const isHost = image.includes('/') && (/[.:A-Z]/.test(first) || first === 'localhost')
  const host = isHost ? first.toLowerCase() : 'docker.io'
  return host === 'index.docker.io' ? 'docker.io' : host
}

/** Of the names that images have which came by `load`. They belong to the application they were loaded for, whatever their labels say. */
export const loadedPrefix = 'busbar-fetched-'

/**
 * Containers on one machine. Every method rejects with a `Problem` that says what to do when the engine
 * is away (503 E_ENGINE_UNREACHABLE), when something does not exist (404 E_CONTAINER_MISSING,
 * E_IMAGE_MISSING), when it refuses (E_ENGINE_REFUSED with its words).
 */
export interface ContainerRuntime {
  info(): Promise<EngineInfo>

  /** Makes the project's bridge network `busbar-<slug>` (a /26 of BUSBAR_SUBNETS) unless it exists; its name. */
  ensureNetwork(project: { readonly id: string; readonly slug: string }): Promise<string>
  /**
   * Makes the project's network for steps of its builds (a /28 of BUSBAR_SUBNETS) unless it exists; its name. Steps
   * reach neither each other nor the project's containers.
   */
  ensureBuildNetwork(projectId: string): Promise<string>
  /** Removes the networks of the project, that of its builds too; 409 E_NETWORK_IN_USE while a container is in one. */
  removeNetworks(projectId: string): Promise<void>

  /** Creates it and leaves it stopped; its id. A create whose start is refused is removed by the caller. */
  create(spec: ContainerSpec): Promise<string>
  start(containerId: string): Promise<void>
  /** Does nothing when it is not running. */
  stop(containerId: string, graceSeconds: number): Promise<void>
  /** Forced, with its anonymous volumes; does nothing when it is gone. */
  remove(containerId: string): Promise<void>
  rename(containerId: string, name: string): Promise<void>
  inspect(containerId: string): Promise<ContainerState | undefined>
  /** Those that belong to every given id. */
  list(owner: Owner): Promise<readonly ContainerState[]>
  /** Where the platform reaches a port of a running container. */
  dial(containerId: string, port: number): Promise<{ readonly host: string; readonly port: number }>
  /**
   * Why the platform's machine cannot reach a running container, where that is so: it sends what is for the
   * container another way. Null when it does not, or when it is not this machine that decides.
   */
  detour(containerId: string): Promise<string | null>
  /** The last lines of output, oldest first: evidence for a failed deploy. */
  tail(containerId: string, lines: number): Promise<readonly string[]>

  image(reference: string): Promise<ImageInfo | undefined>
  /**
   * Built for it by this platform, those without a name too unless another image continues them. Names that `load` gave are
   * left out, and so is what has no other name.
   */
  images(owner: Owner): Promise<readonly BuiltImage[]>
  /** Unless it is gone. Removes a tag; the image with its last one. */
  removeImage(reference: string): Promise<void>
  /** The ids of images upon which others are built, steps too: without its name such a one still takes its room. */
  continuedImages(): Promise<ReadonlySet<string>>
  /**
   * The labels of every image built for `owner`: its project and application, a signature, and every other reserved
   * key with nothing in it. The deployment is in the tag. A build that gives a step others is ended: 422 E_BUILD_LABELS.
   */
  imageLabels(owner: Owner): Promise<Readonly<Record<string, string>>>
  /**
   * Takes in an image as `docker save` writes it: a tar with `manifest.json`, one configuration and the layers, packed or
   * not, which it names `name`, which begins with `loadedPrefix`, and nothing else. A layer that the engine holds upon the same ones may be left out; where
   * one is missing that it does not hold, 409 E_IMAGE_INCOMPLETE. What is not as the configuration says is refused:
   * 422 E_IMAGE_ARCHIVE. `owner`: for `buildUsage`. `onLayer`: a further layer is unpacked, of those that were not held.
   * `onAbandoned`: the signal has aborted when the engine had the whole archive, which it cannot be told to leave. `ended`
   * resolves when it is done, whether or not the image is there then; it rejects where that is unknown.
   */
  load(
    archive: Readable,
    options: {
      readonly name: string
      readonly owner?: Owner
      readonly onLayer?: () => void
      readonly onAbandoned?: (ended: Promise<void>) => void
      readonly signal: AbortSignal
    }
  ): Promise<ImageInfo>
  /** Builds with the classic builder, whose memory and CPU caps hold. `context` is an uncompressed tar. */
  build(
    context: Readable,
    options: BuildOptions,
    progress: { readonly onLine: (line: string) => void; readonly signal: AbortSignal }
  ): Promise<ImageInfo>

  /**
   * The containers in which steps of builds for `owner` run, or ran when the build was cut off: `remove` takes
   * them, and no other method, and waits for one that the engine is about to keep: its image is there then, to be
   * removed as well. Only a build that is under way needs them.
   */
  buildSteps(owner: Owner): Promise<ReadonlyArray<{ readonly id: string; readonly owner: Owner }>>
  /** Of each `build` that runs by this process, measured now, and of each `load` with an owner. */
  buildUsage(): Promise<readonly BuildUsage[]>
  /** What builds for `owner` have left on the engine that no image and no container needs: steps without a name. */
  buildCacheBytes(owner: Owner): Promise<number>
  /** Removes it, but for `keep`, and for what a build that runs by this process has made or goes on from. */
  clearBuildCache(owner: Owner, keep?: KeptSteps): Promise<void>
  /** What a command-line tool needs in its environment to talk to the same engine: DOCKER_HOST, and over TLS its certificates. */
  commandEnvironment(): Promise<Readonly<Record<string, string>>>

  /**
   * Caps each container that is made with `label` (`author=pack`) from now on, until `signal` aborts, whatever client
   * makes it: for programs that start containers and have no option for it. Those of platforms are left alone.
   */
  capLabelled(
    label: string,
    caps: ContainerCaps,
    options: { readonly signal: AbortSignal; readonly onRefusal: (reason: string) => void }
  ): Promise<void>

  /** Makes a named volume unless it exists; 409 E_VOLUME_FOREIGN when it exists with another owner. */
  ensureVolume(name: string, owner: Owner): Promise<void>
  /** Those that belong to every given id. Measuring makes the engine walk through all its volumes. */
  volumes(owner: Owner): Promise<readonly VolumeUsage[]>
  /** Does nothing when it is gone; 409 E_VOLUME_FOREIGN or E_VOLUME_IN_USE. */
  removeVolume(name: string): Promise<void>
  /** Removes all containers that use a volume, also those of others: for volumes that only builds use. */
  releaseVolume(name: string): Promise<void>

  /** Events of our containers, from now on, until `signal` aborts. Reconnects by itself, then yields `resync`. */
  events(signal: AbortSignal): AsyncIterable<ContainerEvent>
}
/** A time in which the engine was away, as it was seen from here. */
export interface EngineOutage {
  readonly lostAt: Date
  readonly backAt: Date
}

export type ContainerEvent =
  /**
   * The engine is there (again): what is known of containers is to be compared with what it holds. `outage`: it
   * had been there and went away meanwhile, so it may have been killed and started again.
   */
  | { readonly kind: 'resync'; readonly outage?: EngineOutage }
  | {
      readonly kind: 'container'
      readonly action: 'start' | 'restart' | 'stop' | 'die' | 'oom' | 'healthy' | 'unhealthy' | 'destroy'
      readonly containerId: string
      readonly owner: Owner
      readonly exitCode: number | null
    }

export const containerRuntime = service<ContainerRuntime>('runtime-docker.containers')
