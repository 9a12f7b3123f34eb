import type { Owner } from './owner.js'

/** As `maxAgeMs` of `info`, for what hardly changes: what the engine's machine is and has. */
export const machineFactsMs = 60_000

export interface EngineInfo {
  readonly version: string
  readonly apiVersion: string
  /** What images are made for that it runs: `linux/amd64`. */
  readonly platform: string
  readonly containers: number
  readonly containersRunning: number
  readonly containersPaused: number
  readonly containersStopped: number
  /** Those without a name too. */
  readonly images: number
  /** What the engine's machine is called. */
  readonly name: string
  /** `Debian GNU/Linux 12 (bookworm)` */
  readonly operatingSystem: string
  /** `linux` */
  readonly osType: string
  /** As the machine calls it: `x86_64`. */
  readonly architecture: string
  readonly kernelVersion: string
  /** Where the output of containers goes unless they say otherwise, in the engine's words: `json-file`. */
  readonly loggingDriver: string
  /** What makes control groups, in the engine's words: `cgroupfs`, `systemd`. */
  readonly cgroupDriver: string
  /** What of a container the machine cannot limit, although it was asked to: its kernel or its control groups do not support it. */
  readonly unlimited: ReadonlyArray<'memory' | 'swap' | 'cpu' | 'processes'>
  /** How far the engine's clock is ahead of the platform's, to some tens of milliseconds; null where it does not tell the time. */
  readonly clockAheadMs: number | null
  /** Of the engine's machine. */
  readonly cores: number
  readonly memoryBytes: number
  /** Where it keeps images and containers, as a path of its machine. */
  readonly dataRoot: string
  /** How it keeps them, in its words: `overlay2`, `vfs`. */
  readonly storageDriver: string
  /** Of the control groups of its machine. */
  readonly cgroupVersion: 1 | 2
  /**
   * `here`: on the platform's machine. `around`: there too, and the platform runs in one of its containers,
   * where its paths mean nothing. `elsewhere`: on a machine that the platform knows by the engine's words alone.
   */
  readonly place: 'here' | 'around' | 'elsewhere'
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

export interface VolumeUsage {
  readonly name: string
  readonly sizeBytes: number
}
