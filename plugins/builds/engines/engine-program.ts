import { stepsGroupScript } from './steps-group.js'

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
  readonly bases: readonly Base[]
  /** Names that may be of images, and that none was put into the build engine for. */
  readonly missing: readonly string[]
}

/** An image that was put into the build engine, as its operator has it on the engine of the platform. */
export interface Base {
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
export interface Command {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/**
 * How an image is laid out that a build has made, or that is given to one. `layout`: as the OCI says, with `index.json` and
 * `blobs/`; `archive`: as `docker save` writes it, with `manifest.json`.
 */
export type ImageLayout = 'layout' | 'archive'

/** A program that builds images: its daemon runs in the container of a build engine, and its client is run beside it. */
export interface EngineProgram {
  readonly kind: 'buildkit' | 'dockerd'
  /** As the log says it. */
  readonly name: string
  /** What the container runs, once control groups can be made in it. */
  readonly daemon: Command
  /** Ends with 0 when the daemon takes builds. */
  readonly ready: Command
  readonly takes: ImageLayout
  readonly makes: ImageLayout
  /** Takes in what was put into the folder of a base, once. Absent: it is used from there. */
  addBase?(directory: string): Command
  build(build: ProgramBuild): Command
  /** Removes what builds that did not come to their end have left in the daemon itself, but of the deployments that are live. */
  forget?(live: readonly string[]): Command
  /** Removes what no build uses now, the oldest first, until so many bytes are left of it. */
  prune(keptBytes: number): Command
}

/** Everything of a build engine that stays when its container goes. */
export const engineVolumePath = '/var/lib/builder'
export const workPath = `${engineVolumePath}/work`
export const basesPath = `${engineVolumePath}/bases`

/** A container may not write to its control groups, nor to what the kernel can be set to, unless it mounts them anew. */
const preparation = `set -e
mkdir -p ${workPath} ${basesPath} ${engineVolumePath}/tmp
${stepsGroupScript.trim()}
mount -o remount,bind,rw /proc/sys
rm -rf ${workPath}/*
exec "$@"`

/** The entry point of the container. */
export const entrypoint = ({ daemon }: EngineProgram): readonly string[] => [
  'sh',
  '-c',
  preparation,
  'prepare',
  ...daemon.argv
]
