import { stepsGroupScript, stepsRuntimeScript } from './steps-group.js'

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
  nameBase(digest: string): Command
  /** Of an image that the engine has pulled. */
  nameOfPulled(reference: string): string
  /** As everybody may, unless the engine has it by `name`. */
  pull(reference: string, name: string): Command
  /** Writes into a file what a builder says of itself. */
  describe(name: string, file: string): Command
  build(build: BuildpacksBuild): Command
  /** Ends and removes what a build has left in the engine, however it ended. */
  cleanUp(deploymentId: string): Command
}

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
  /** Absent: it is no Docker Engine, of which `pack` could ask for its containers. */
  readonly buildpacks?: BuildpacksProgram
  /** Removes what builds that did not come to their end have left in the daemon itself, but of the deployments that are live. */
  forget?(live: readonly string[]): Command
  /** Removes what no build uses now, the oldest first, until so many bytes are left of it. */
  prune(keptBytes: number): Command
}

/** Everything of a build engine that stays when its container goes. */
export const engineVolumePath = '/var/lib/builder'
export const workPath = `${engineVolumePath}/work`
export const basesPath = `${engineVolumePath}/bases`
/** Programs of the platform's machine. */
export const toolsPath = `${engineVolumePath}/tools`

/** A container may not write to its control groups, nor to what the kernel can be set to, unless it mounts them anew. */
const preparation = `set -e
mkdir -p ${workPath} ${basesPath} ${toolsPath} ${engineVolumePath}/tmp
${stepsGroupScript.trim()}
${stepsRuntimeScript.trim()}
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
