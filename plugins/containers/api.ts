import type { Readable } from 'node:stream'
import { service } from 'busbar/sdk'
import type {
  ContainerCaps,
  ContainerDiskUse,
  ContainerFileUse,
  ContainerProgram,
  ContainerSpec,
  ContainerState,
  ContainerStats,
  ContainerTerminal,
  ExecOptions,
  LogBatch,
  LogOptions,
  MeasuringLimits,
  ProgramOptions,
  TerminalOptions
} from './container.js'
import type { ContainerEvent, EngineInfo, VolumeUsage } from './engine.js'
import type { EngineInventory, PublishedPort } from './inventory.js'
import type { Owner } from './owner.js'

export type * from './container.js'
export type * from './engine.js'
export { machineFactsMs } from './engine.js'
export { type HeldBy, heaviestOwners, type OwnerHolding } from './holders.js'
export * from './inventory.js'
export { type Mounted, mountPathFault, mountsCollide } from './mount-path.js'
export { type Owner, ownerKeys } from './owner.js'
export { containerProblems, engineProblems, terminalProblems } from './problems.js'

/**
 * Containers on one machine, whatever runs them: the engine. Every method rejects with a `Problem` that says what to do:
 *
 * - the engine is away: 503 E_ENGINE_UNREACHABLE; its disk is full: 507 E_ENGINE_DISK_FULL
 * - it refuses, in its words: 502 E_ENGINE_REFUSED
 * - there is no such container: 404 E_CONTAINER_MISSING; it is not this platform's: 409 E_CONTAINER_FOREIGN; it
 *   has to run and does not: 409 E_CONTAINER_NOT_RUNNING
 */
export interface ContainerRuntime {
  /**
   * What the engine says of itself and its machine. To say it takes an engine tens of milliseconds: who asks for what hardly
   * changes takes an answer up to `maxAgeMs` old (usual: 0, a new one).
   */
  info(options?: { readonly maxAgeMs?: number }): Promise<EngineInfo>
  /**
   * The ports that the engine publishes of the container that the platform runs in; `hostPort` is 0 where the engine chooses it. Null
   * where it runs in none of this engine, or in one that is in the network of the machine: there a port of the platform is one of its
   * machine.
   */
  platformPorts(): Promise<readonly PublishedPort[] | null>

  /**
   * Makes the project's network `busbar-<slug>` unless it exists; its name. 409 E_NETWORK_NAME_TAKEN,
   * E_NETWORK_SUBNETS_EXHAUSTED.
   */
  ensureNetwork(project: { readonly id: string; readonly slug: string }): Promise<string>
  /**
   * Makes the project's network for steps of its builds unless it exists; its name. Steps reach neither each other nor
   * the project's containers.
   */
  ensureBuildNetwork(projectId: string): Promise<string>

  /**
   * Creates it and leaves it stopped; its id. A create whose start is refused is removed by the caller. 404
   * E_IMAGE_MISSING, 409 E_CONTAINER_NAME_TAKEN, 422 E_IMAGE_DECLARES.
   */
  create(spec: ContainerSpec): Promise<string>
  /** Does nothing when it runs. It is started again when it ends, and after an outage, until `stop`, unless its spec says otherwise. */
  start(containerId: string): Promise<void>
  /** Does nothing when it is not running. It is killed when it has not ended after the grace. */
  stop(containerId: string, graceSeconds: number): Promise<void>
  /**
   * Stops one that runs, as `stop`, and starts it again, as one step: it runs afterwards whatever becomes of the caller. Does
   * nothing when it does not run.
   */
  restart(containerId: string, graceSeconds: number): Promise<void>
  /**
   * Forced, with its anonymous volumes; does nothing when it is gone. The files in these may be millions, and go while other
   * containers and volumes are made; they are waited for no longer than `filesMs`, and without it only where those of many of
   * its project wait to go, for a minute at most.
   */
  remove(
    containerId: string,
    options?: {
      readonly filesMs?: number
      /** Called when the container is gone, and before its files are waited for. */
      readonly onGone?: () => Promise<void>
    }
  ): Promise<void>
  /**
   * Removes the files (`ContainerSpec.files`) of containers that were never made, of which every given id is the owner: where the
   * platform ended in between. Without it they go by themselves, some minutes later.
   */
  removeLeftFiles(owner: Owner): Promise<void>
  /** 409 E_CONTAINER_NAME_TAKEN. */
  rename(containerId: string, name: string): Promise<void>
  /** Undefined when it is gone or not this platform's. */
  inspect(containerId: string): Promise<ContainerState | undefined>
  /** Those that belong to every given id. */
  list(owner: Owner): Promise<readonly ContainerState[]>

  /** Where the platform reaches a port of a running container. */
  dial(containerId: string, port: number): Promise<{ readonly host: string; readonly port: number }>
  /**
   * Why the platform's machine cannot reach a running container, where that is so: it sends what is for the
   * container another way. Null when it does not, or when it is not this machine that decides.
   */
  routeConflict(containerId: string): Promise<string | null>

  /** The last lines of output, oldest first: evidence for a failed deploy. At most 2 000; fewer when fewer are there. */
  tail(containerId: string, lines: number): Promise<readonly string[]>
  /**
   * Its output, oldest first, as it comes; ends when there is no more, see `LogOptions`. Aborting ends it without an error. It waits for
   * who reads it, and holds a few hundred KiB at most meanwhile; what the container writes then waits in the log that the engine keeps.
   */
  logs(containerId: string, options: LogOptions): AsyncIterable<LogBatch>
  /**
   * Runs a program beside the container's own; its exit code, 126 or 127 where it could not be started, with the reason as
   * output. `command`: as an argument list, which no shell reads. Rejects with the signal's reason when that aborts:
   * the program goes on then, as engines have no way of ending it.
   */
  exec(containerId: string, command: readonly string[], options: ExecOptions): Promise<number>
  /**
   * Runs a program beside the container's own whose input and output are bytes, of any length: what dumps a database, or unpacks an
   * archive. `command` as for `exec`. 502 E_CONTAINER_PROGRAM where the container has no `sh`, which is needed to end it.
   */
  openProgram(
    containerId: string,
    command: readonly string[],
    options: ProgramOptions
  ): Promise<ContainerProgram>
  /**
   * Runs a program with a terminal, as the container's user and in its directory. It ends with the caller's process, and what was
   * started in it too, as far as the engine can tell it in time: `endTerminal` makes sure. 502 E_CONTAINER_PROGRAM
   * where the container has no such program, or no `sh`, which is needed to end it.
   */
  openTerminal(
    containerId: string,
    command: readonly string[],
    options: TerminalOptions
  ): Promise<ContainerTerminal>
  /** Ends all that was started in a terminal that may be left from before. Does nothing where the container is gone or does not run. */
  endTerminal(containerId: string, terminalId: string): Promise<void>
  /** Of one that runs, from now on, instead of those that it was made with. */
  setCaps(containerId: string, caps: ContainerCaps): Promise<void>
  /**
   * Unpacks an uncompressed tar into a directory of a running container, with the owners and rights that it names; what is
   * there is overwritten. Neither a name in the tar nor a link in the container leads out of the container's root and its
   * volumes; what it has mounted itself is not seen. When it fails or `signal` aborts, a part may be there. An engine lets
   * other calls for the container wait meanwhile, `stop` too: the tar is to come without delay. 404 E_CONTAINER_PATH, 409 E_CONTAINER_READONLY, 422 E_CONTAINER_FILES.
   */
  putFiles(
    containerId: string,
    directory: string,
    tar: Readable,
    options: { readonly signal: AbortSignal }
  ): Promise<void>
  /**
   * A file, or a directory with what is in it, of a running container as an uncompressed tar, with the same limits. Its
   * names, links, owners and sizes are the container's choice. The stream fails where the tar does not come to its end,
   * and with the signal's reason when that aborts; who does not read it to its end destroys it. Until then an engine lets
   * other calls for the container wait: what is large is read in several calls. 404 E_CONTAINER_PATH.
   */
  getFiles(containerId: string, path: string, options: { readonly signal: AbortSignal }): Promise<Readable>
  /** Measured now. */
  stats(containerId: string): Promise<ContainerStats>
  /** Of those that belong to every given id, stopped ones too. Measuring makes the engine look at each of their files. */
  diskUse(owner: Owner, limits: MeasuringLimits): Promise<readonly ContainerDiskUse[]>
  /**
   * Of those that belong to every given id, stopped ones too. `most`: in each place of one, counting ends there, and
   * what there is more is not looked for. It takes a place for one container more where the platform is not root on the
   * engine's machine. Rejects where that machine has no programs that count.
   */
  fileUse(
    owner: Owner,
    options: MeasuringLimits & {
      readonly most: number
      readonly since: Date
      /** Each is held still while it is looked at: files that are moved, or handed from process to process, hide from no look then. */
      readonly still?: boolean
    }
  ): Promise<readonly ContainerFileUse[]>
  /** Events of our containers, from now on, until `signal` aborts. Reconnects by itself, then yields `resync`. */
  events(signal: AbortSignal): AsyncIterable<ContainerEvent>

  /** Makes a named volume unless it exists; 409 E_VOLUME_FOREIGN when it exists with another owner. */
  ensureVolume(name: string, owner: Owner): Promise<void>
  /** Those that belong to every given id. Measuring may make the engine walk through all its volumes. */
  volumes(owner: Owner): Promise<readonly VolumeUsage[]>
  /** The names of those that belong to every given id. */
  volumeNames(owner: Owner): Promise<readonly string[]>
  /** The containers of this platform that have it mounted, stopped ones too, by their ids. */
  volumeUsers(name: string): Promise<readonly string[]>
  /**
   * All that is in a volume as an uncompressed tar, whose names begin with `volume/`, with owners and rights; what is written meanwhile
   * may be in it or not. The stream fails where the tar does not come to its end, and with the signal's reason when that
   * aborts; who does not read it to its end destroys it. One of a volume is read or filled at a time. 404 E_VOLUME_MISSING, 409 E_VOLUME_FOREIGN.
   */
  readVolume(name: string, options: { readonly signal: AbortSignal }): Promise<Readable>
  /**
   * Unpacks a tar as `readVolume` gives it into a volume, with the owners and rights that it names; what is there is overwritten. No
   * name and no link in it leads anywhere but into the volume, or to nowhere. When it fails or `signal` aborts, a part may be there. 422 E_CONTAINER_FILES.
   */
  fillVolume(name: string, tar: Readable, options: { readonly signal: AbortSignal }): Promise<void>
  /**
   * What two volumes hold is exchanged, as one step, however much it is; 409 E_VOLUME_IN_USE while a container runs that has one of
   * them. `isResumed`: of a platform that has ended since, which had begun it or was about to; what it has finished stays as it is.
   */
  exchangeVolumes(name: string, other: string, how?: { readonly isResumed: boolean }): Promise<void>
  /** Takes away what `readVolume` or `fillVolume` of a volume has left whose process was killed, and cuts off one that is under way. */
  endVolumeCalls(name: string): Promise<void>
  /**
   * Does nothing when it is gone; 409 E_VOLUME_FOREIGN or E_VOLUME_IN_USE. Nobody but the caller waits for its files, however
   * many they are; 503 E_VOLUME_NOT_EMPTIED where that takes too long: what is left goes when it is removed again.
   */
  removeVolume(name: string): Promise<void>
  /** Removes all containers that use a volume, also those of others: for volumes that only builds use. */
  releaseVolume(name: string): Promise<void>

  /**
   * What a program needs in its environment to talk to the same engine by itself, as builders do that speak the Docker
   * API: DOCKER_HOST, and over TLS its certificates.
   */
  commandEnvironment(): Promise<Readonly<Record<string, string>>>
  /**
   * Caps each container that is made with `label` (`author=pack`) from now on, until `signal` aborts, whatever
   * client makes it: for programs that start containers and have no option for it. Those of platforms are left alone.
   */
  capLabelled(
    label: string,
    caps: ContainerCaps,
    options: { readonly signal: AbortSignal; readonly onRefusal: (reason: string) => void }
  ): Promise<void>
}

export const containerRuntime = service<ContainerRuntime>('containers.runtime')

/** What there is on the engine. */
export const engineInventory = service<EngineInventory>('containers.inventory')
