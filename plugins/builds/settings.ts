import { availableParallelism, totalmem } from 'node:os'
import { fromEnvironment, maybe, object, type Static, Type } from 'busbar/sdk'
import type { BuildLimits } from './api.js'
import type { DiskLimits } from './disk/disk-decision.js'
import { parseHostPolicy } from './network/host-policy.js'

export type { BuildLimits }

const image = (default_: string, description: string) =>
  Type.String({ minLength: 1, maxLength: 300, default: default_, description })

/** The images that builders work with. */
const images = {
  static_image: image(
    'nginxinc/nginx-unprivileged:stable-alpine',
    'Image with nginx that static sites are served by'
  ),
  static_build_image: image(
    'node:22-alpine',
    'Image with Node.js that builds static sites which have a build script'
  ),
  buildpacks_builder: image('heroku/builder:24', 'Buildpacks builder of applications that choose none'),
  railpack_frontend: image(
    'ghcr.io/railwayapp/railpack-frontend:v0.38.0',
    'Front-end image that builds what railpack plans, in build engines; of the version of the program railpack'
  )
}

/** Of the containers in which builds of a project run. */
const engineImages = {
  buildkit_image: image('moby/buildkit:v0.32.0', 'Image with buildkitd and buildctl, for build engines'),
  dockerd_image: image('docker:29-dind', 'Image with dockerd and the docker command, for build engines')
}

/** Of the platform's environment, what foreign programs need to reach the world as the platform does. */
const toolVariables = [
  'PATH',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'DOCKER_CONFIG'
] as const
type ToolVariable = (typeof toolVariables)[number]
export type ToolVariables = Readonly<Partial<Record<ToolVariable, string>>>

/** The address of a proxy may have a password in it. */
const handedOn = (name: ToolVariable) =>
  maybe(
    fromEnvironment(name, Type.String({ description: 'Handed on to railpack, pack and nixpacks' }), {
      secret: /proxy$/i.test(name)
    })
  )
const forTools = Object.fromEntries(toolVariables.map(name => [name, handedOn(name)])) as Record<
  ToolVariable,
  ReturnType<typeof handedOn>
>

/** Those of them that are set. */
export const toolVariablesOf = (config: ToolVariables): ToolVariables =>
  Object.fromEntries(
    toolVariables.flatMap(name => (config[name] === undefined ? [] : [[name, config[name]] as const]))
  )

/** Which kinds there are depends on the plugins that run. */
const engineName = { pattern: '^[a-z][a-z0-9-]*$', maxLength: 40 } as const
/** Longer than a week is a mistake, and 24 days are longer than a timer can be. */
const minutes = { exclusiveMinimum: 0, maximum: 10_080 } as const

/** What an operator may set; absent values follow the machine. */
export const settings = object({
  memory_mib: maybe(
    Type.Integer({
      minimum: 128,
      description:
        'Memory a build may use, MiB; an equal share of 60 % of the machine, at least 512, unless set'
    })
  ),
  cpus: maybe(
    Type.Number({
      minimum: 0.1,
      description: 'Cores a build may use; an equal share of all but half a core unless set'
    })
  ),
  concurrent: maybe(
    Type.Integer({
      minimum: 1,
      maximum: 64,
      description: 'Builds at once; as many as have 2 GiB and two cores each, at most 4, unless set'
    })
  ),
  reserve_mib: maybe(
    Type.Integer({
      minimum: 0,
      description:
        'Free memory that builds leave to the platform and the applications, MiB; a tenth of the machine, 128 to 1024, unless set'
    })
  ),
  disk_floor_mib: Type.Integer({
    minimum: 0,
    default: 1024,
    description:
      'With less free disk than this nothing is built or pulled, and what is under way is stopped, MiB'
  }),
  build_disk_mib: Type.Integer({
    minimum: 1,
    default: 10_240,
    description: 'How much one build may write on the engine, MiB'
  }),
  failed_steps_mib: Type.Integer({
    minimum: 0,
    default: 1024,
    description: 'How much the steps of failed builds of one application may keep for its next one, MiB'
  }),
  wait_minutes: Type.Integer({
    minimum: 1,
    maximum: 10_080,
    default: 60,
    description: 'How long a build may wait for its turn'
  }),
  checkout_mib: Type.Integer({
    minimum: 1,
    default: 2048,
    description:
      'How large a checked-out repository may be, and together what the ADDs of one build fetch, MiB'
  }),
  ...images,
  build_engine: maybe(
    Type.String({
      ...engineName,
      description:
        'What builds: a BuildKit or a Docker Engine that each project has to itself (buildkit, dockerd, or a kind of another plugin), or the classic builder of the engine (classic); auto takes the best that can be had. As BUILD_ENGINE says unless set'
    })
  ),
  usual_build_engine: fromEnvironment(
    'BUILD_ENGINE',
    Type.String({
      ...engineName,
      default: 'auto',
      description: 'What builds where the setting build_engine says nothing'
    })
  ),
  build_engine_idle_minutes: Type.Number({
    ...minutes,
    default: 10,
    description: 'How long the build engine of a project stays started without a build'
  }),
  build_cache_mib: Type.Integer({
    minimum: 0,
    default: 10_240,
    description:
      'How much the build engine of a project keeps for its next builds, beside what builds use, MiB'
  }),
  build_caches_mib: Type.Integer({
    minimum: 0,
    default: 51_200,
    description: 'How much the build engines of all projects keep together, MiB'
  }),
  ...engineImages,
  git_private_hosts: maybe(
    fromEnvironment(
      'GIT_PRIVATE_HOSTS',
      Type.String({
        description:
          'Private hosts that builds may connect to; allow while the platform listens on loopback only, else deny'
      }),
      {
        takes: 'allow, deny, or host names, addresses and ranges such as 10.0.0.0/8, separated by commas',
        parse: parseHostPolicy
      }
    )
  ),
  buildkit_host: fromEnvironment(
    'BUILDKIT_HOST',
    Type.String({
      default: 'tcp://localhost:1234',
      description: 'The BuildKit daemon that railpack builds with'
    })
  ),
  build_timeout_minutes: fromEnvironment(
    'BUILD_TIMEOUT_MINUTES',
    Type.Number({ ...minutes, default: 30, description: 'How long a build may take' })
  ),
  image_pull_timeout_minutes: fromEnvironment(
    'IMAGE_PULL_TIMEOUT_MINUTES',
    Type.Number({ ...minutes, default: 10, description: 'How long a pull may take' })
  ),
  ...forTools
})
export type Settings = Static<typeof settings>

/** Those that say how much is built at once. */
export type BuildSettings = Pick<
  Settings,
  'memory_mib' | 'cpus' | 'concurrent' | 'reserve_mib' | 'disk_floor_mib' | 'wait_minutes' | 'checkout_mib'
>

/** How many builds run at once, and what each may use: together they fit into what builds may have. */
interface BuildSlots {
  readonly count: number
  /** The hard caps of one build: the same whatever else is built, so that a build never fails for its neighbours. */
  readonly each: BuildLimits
  /** What all of them may have together. */
  readonly memoryBytes: number
  readonly reserveBytes: number
}

const mebibyte = 2 ** 20
const leastMemoryBytes = 512 * mebibyte
const memoryShare = 0.6
/** Where this is there for each, several builds run side by side, so that a short one need not wait for a long one. */
const comfortable = { memoryBytes: 2048 * mebibyte, cpus: 2 } as const
const maxDefaultCount = 4

export function buildSlots(
  config: BuildSettings,
  machine: { readonly memoryBytes: number; readonly cores: number }
): BuildSlots {
  const memory = config.memory_mib === undefined ? undefined : config.memory_mib * mebibyte
  const share = Math.max(leastMemoryBytes, Math.floor(machine.memoryBytes * memoryShare))
  const cores = Math.max(0.5, machine.cores - 0.5)
  const fitting = Math.floor(
    Math.min(
      share / (memory ?? comfortable.memoryBytes),
      machine.cores / (config.cpus ?? comfortable.cpus),
      maxDefaultCount
    )
  )
  const count = config.concurrent ?? Math.max(1, fitting)
  const each = {
    memoryBytes: memory ?? Math.max(leastMemoryBytes, Math.floor(share / count)),
    cpus: Math.min(machine.cores, config.cpus ?? Math.max(0.1, Math.floor((cores / count) * 100) / 100))
  }
  return {
    count,
    each,
    memoryBytes: Math.max(share, each.memoryBytes),
    reserveBytes:
      config.reserve_mib === undefined
        ? Math.min(1024 * mebibyte, Math.max(128 * mebibyte, Math.floor(machine.memoryBytes / 10)))
        : config.reserve_mib * mebibyte
  }
}

/** What one build may use where the engine's machine was not measured. */
export const buildLimits = (
  config: BuildSettings,
  machine = { memoryBytes: totalmem(), cores: availableParallelism() }
): BuildLimits => buildSlots(config, machine).each

export const diskLimits = (
  config: Pick<Settings, 'disk_floor_mib' | 'build_disk_mib' | 'failed_steps_mib'>
): DiskLimits => ({
  floorBytes: config.disk_floor_mib * mebibyte,
  buildBytes: config.build_disk_mib * mebibyte,
  failedBytes: config.failed_steps_mib * mebibyte
})
