import type { ContainerSpec } from 'busbar/api/containers'
import type Docker from 'dockerode'
import type { HeldFiles } from './file-holders.js'
import type { Identity } from './identity.js'
import { filesLabel, type Labels } from './labels.js'

const nanosecondsPerSecond = 1e9

/** More than any ordinary server needs, few enough that a fork bomb does not take the machine. */
const usualProcesses = 4096

/** How long a container may take to end when the engine itself stops it. */
const stopGraceSeconds = 30

/**
 * Where memory runs out, an application ends before the platform, its PostgreSQL and the engine, whose score is 0 or
 * less.
 */
const killedFirst = 500
/** Of one without a limit: it ends before those that have one, unless one of these has a fifth of all memory more. */
const extraUnlimited = 200

// Any user may write there, as on an ordinary machine; memory used counts against the container's limit.
const scratch = {
  '/tmp': 'rw,exec,nosuid,nodev,size=256m,mode=1777',
  '/run': 'rw,nosuid,nodev,size=64m,mode=1777'
}

/**
 * What the engine makes read-only in each container, and three files of its own that it mounts there from its disk: what
 * is written into these counts for no container and stays within no limit.
 */
const readonlyPaths = [
  '/proc/bus',
  '/proc/fs',
  '/proc/irq',
  '/proc/sys',
  '/proc/sysrq-trigger',
  '/etc/hosts',
  '/etc/hostname',
  '/etc/resolv.conf'
]

/**
 * What is meant of a container is kept where it survives every crash: in the engine. One that should run carries
 * the first; a stop by us gives it the second before it ends, because the engine writes a stop down late.
 */
export const restartPolicies = { running: { Name: 'unless-stopped' }, stopped: { Name: 'no' } } as const

/** Of a container that a start gives no other policy than the second. What its image says there is emptied at its creation. */
const restartsLabel = 'busbar-restarts'
export const isNeverRestarted = ({ Labels: labels }: { readonly Labels?: Labels | null }): boolean =>
  labels?.[restartsLabel] === 'no'

/**
 * For one that runs containers of its own. It may mount file systems, and make namespaces and control groups: these in
 * a control group namespace of its own, where it sees no others. Programs there may become another user (setuid), as in
 * any image that they are from.
 */
const runsContainersOptions: Docker.HostConfig & { readonly CgroupnsMode: string } = {
  CapAdd: ['SYS_ADMIN', 'NET_ADMIN'],
  SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined', 'label=disable'],
  CgroupnsMode: 'private',
  // Engines give each container a score of 0, and none can be lowered without a further capability. Its memory is limited.
  OomScoreAdj: 0
}

/** For a program of the platform that serves its machine. Where memory runs out it stays as long as the platform does. */
const onMachineOptions = ({
  user,
  folders
}: NonNullable<ContainerSpec['onMachine']>): Pick<
  Docker.HostConfig,
  'NetworkMode' | 'UsernsMode' | 'CapAdd' | 'SecurityOpt' | 'OomScoreAdj' | 'Mounts'
> => ({
  NetworkMode: 'host',
  // An engine that renames users would lend neither the network of the machine nor its folders.
  UsernsMode: 'host',
  CapAdd: ['NET_BIND_SERVICE'],
  // Whoever is not root gets that right by the file of the program alone, which this would prevent.
  SecurityOpt: [...(user.uid === 0 ? ['no-new-privileges:true'] : []), 'label=disable'],
  OomScoreAdj: 0,
  Mounts: folders.map(({ path, readOnly = false }) => ({
    Type: 'bind',
    Source: path,
    Target: path,
    ReadOnly: readOnly
  }))
})

interface Around {
  /** Those of its image. */
  readonly imageLabels: Labels | null | undefined
  /** What it says of its health. */
  readonly imageHealth?: Docker.HealthConfig | null | undefined
  /** The control group that it is to be in; without one, the engine chooses. */
  readonly parentGroup: string | undefined
  /** Those that it sees. */
  readonly files?: HeldFiles | undefined
}

/** What the engine is asked to create: hardened unless the spec says otherwise. */
export function containerOptions(
  spec: ContainerSpec,
  identity: Identity,
  { imageLabels, imageHealth, parentGroup, files }: Around
): Docker.ContainerCreateOptions {
  const { labels, mark } = identity.ofContainer(spec.owner, imageLabels)
  return {
    name: spec.name,
    Image: spec.image,
    Env: Object.entries(spec.env).map(([key, value]) => `${key}=${value}`),
    ...(spec.command === undefined ? {} : { Cmd: [...spec.command] }),
    ...(spec.entrypoint === undefined ? {} : { Entrypoint: [...spec.entrypoint] }),
    Labels: {
      ...labels,
      ...(spec.restarts === false && { [restartsLabel]: 'no' }),
      ...(files !== undefined && { [filesLabel]: files.holder })
    },
    StopTimeout: stopGraceSeconds,
    ...(spec.stopSignal === undefined ? {} : { StopSignal: spec.stopSignal }),
    ...healthCheckOf(spec, imageHealth),
    HostConfig: {
      // The client's own note, which the engine keeps and nothing else reads: here it says whose the container is.
      ContainerIDFile: mark,
      NetworkMode: spec.network,
      Init: true,
      CapDrop: spec.caps === 'minimal' ? ['ALL'] : rawSockets(spec),
      SecurityOpt: ['no-new-privileges:true'],
      ReadonlyRootfs: spec.readonlyRootfs,
      ReadonlyPaths: readonlyPaths,
      ...(spec.readonlyRootfs ? { Tmpfs: scratch } : {}),
      PidsLimit: spec.processes ?? usualProcesses,
      OomScoreAdj: spec.memoryLimit > 0 ? killedFirst : killedFirst + extraUnlimited,
      ...(parentGroup === undefined ? {} : { CgroupParent: parentGroup }),
      // Swap is the difference between the two: none.
      ...(spec.memoryLimit > 0 ? { Memory: spec.memoryLimit, MemorySwap: spec.memoryLimit } : {}),
      // Without it, the first version of control groups counts nothing of what waits in sockets. The second one always does.
      ...(spec.memoryLimit > 0 ? { KernelMemoryTCP: spec.memoryLimit } : {}),
      ...(spec.cpuLimit > 0 ? { NanoCpus: Math.round(spec.cpuLimit * 1e9) } : {}),
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
      RestartPolicy: spec.restarts === false ? restartPolicies.stopped : restartPolicies.running,
      Mounts: [
        ...(spec.volumes ?? []).map(({ volume, path, readOnly }) => ({
          Type: 'volume' as const,
          Source: volume,
          Target: path,
          ReadOnly: readOnly ?? false,
          VolumeOptions: {
            NoCopy: false,
            Labels: identity.ofVolume(ownerOfVolumes(spec.owner), volume),
            DriverConfig: { Name: 'local', Options: {} }
          }
        })),
        ...(files?.mounts ?? []).map(({ source, path }) => ({
          Type: 'bind' as const,
          Source: source,
          Target: path,
          ReadOnly: true
        }))
      ],
      ...(spec.runsContainers === true && runsContainersOptions),
      ...(spec.onMachine !== undefined && onMachineOptions(spec.onMachine))
    },
    ...(spec.onMachine === undefined
      ? { NetworkingConfig: { EndpointsConfig: { [spec.network]: {} } } }
      : { User: `${spec.onMachine.user.uid}:${spec.onMachine.user.gid}` })
  }
}

/** As `ensureVolume` was asked for it: a volume with a name outlives the deployment that it is made for. */
const ownerOfVolumes = ({ deploymentId: _, ...owner }: ContainerSpec['owner']): ContainerSpec['owner'] =>
  owner

/**
 * Frames with any sender fill tables that the machine has once, and pass for others of the network. A container that runs
 * others gives this right to theirs.
 */
const rawSockets = ({ runsContainers }: ContainerSpec): string[] =>
  runsContainers === true ? [] : ['NET_RAW']

/** What a check costs that an image brings, the engine pays: it starts a program each time. */
const leastIntervalSeconds = 2

function healthCheckOf(
  { healthCommand }: ContainerSpec,
  imageHealth: Around['imageHealth']
): Pick<Docker.ContainerCreateOptions, 'Healthcheck'> {
  if (healthCommand !== undefined) return { Healthcheck: healthCheck(healthCommand) }
  const least = leastIntervalSeconds * nanosecondsPerSecond
  const { Interval: interval = 0, StartInterval: startInterval = 0 } = (imageHealth ?? {}) as {
    readonly Interval?: number
    readonly StartInterval?: number
  }
  const isTooOften = (each: number): boolean => each > 0 && each < least
  if (!isTooOften(interval) && !isTooOften(startInterval)) return {}
  // What is not said here stays as the image has it.
  return {
    Healthcheck: {
      ...(isTooOften(interval) && { Interval: least }),
      ...(isTooOften(startInterval) && { StartInterval: least })
    } as Docker.HealthConfig
  }
}

function healthCheck(check: NonNullable<ContainerSpec['healthCommand']>): Docker.HealthConfig {
  return {
    Test: ['CMD-SHELL', check.command],
    Interval: check.intervalSeconds * nanosecondsPerSecond,
    Timeout: check.timeoutSeconds * nanosecondsPerSecond,
    Retries: check.retries,
    StartPeriod: check.startPeriodSeconds * nanosecondsPerSecond
  }
}
