import type { EngineInfo } from 'busbar/api/containers'
import { type ConfigWarning, isProblem } from 'busbar/sdk'
import semver from 'semver'
import type { LimitState } from './host/host-limits.js'

interface EngineStates {
  readonly packets: LimitState['kind']
  readonly groups: LimitState['kind']
  readonly bridges: LimitState['kind']
}

/** The oldest that is tested: Debian 12's. */
const oldestApi = '1.41'
const oldestEngine = '20.10'
/** Clocks that follow a time server differ by less. */
const mostApartMs = 5_000

const words = {
  memory: 'memory',
  swap: 'swap',
  cpu: 'processor time',
  processes: 'number of processes'
} as const

/** What is wrong with the engine and its machine, by what it says of itself. */
export function engineWarnings(info: EngineInfo, states: EngineStates): ConfigWarning[] {
  const warnings: ConfigWarning[] = []
  if (isOlder(info.apiVersion))
    warnings.push({
      code: 'engine_too_old',
      message: `the Docker Engine is ${info.version} (API ${info.apiVersion}), which is older than what the platform is made for`,
      remedy: `install Docker ${oldestEngine} (API ${oldestApi}) or newer`
    })
  if (info.unlimited.length > 0)
    warnings.push({
      code: 'cgroup_limits_missing',
      message: `the machine of the Docker Engine cannot limit the ${info.unlimited.map(limit => words[limit]).join(', ')} of containers, so limits of applications and builds do not hold`,
      remedy:
        'start its kernel with cgroup_enable=memory swapaccount=1, or with control groups of version 2 (systemd.unified_cgroup_hierarchy=1); docker info says what is missing'
    })
  if (states.groups === 'failed')
    warnings.push({
      code: 'containers_unbounded',
      message:
        'the containers of a project have no limit that holds for all of them together, so they may use all memory and processes of their machine',
      remedy: 'the log says why the control groups could not be made; let the engine use them'
    })
  if (states.packets === 'failed')
    warnings.push({
      code: 'host_exposed',
      message:
        'the rules could not be set that keep containers from their machine, so they reach each port that it opens',
      remedy:
        'install iptables on the machine of the engine, or set the rules of the README of runtime-docker yourself; the log says why it failed'
    })
  if (states.packets === 'unguarded' || states.bridges === 'failed')
    warnings.push({
      code: 'containers_unguarded',
      message:
        'containers may pass for each other outside of their networks, or fill tables that their machine has once',
      remedy:
        'load what the log names (rpfilter, connlimit and hashlimit are modules of the kernel), or set the rules of the README of runtime-docker yourself'
    })
  if (info.storageDriver === 'vfs')
    warnings.push({
      code: 'slow_storage_driver',
      message:
        'the Docker Engine keeps images with the driver vfs, which copies every layer for each container: it is slow and fills the disk',
      remedy:
        'put its data on a file system with overlay2 (ext4, xfs), and set "storage-driver": "overlay2" in daemon.json'
    })
  if (info.clockAheadMs !== null && Math.abs(info.clockAheadMs) > mostApartMs)
    warnings.push({
      code: 'engine_clock',
      message: `the clocks of the platform and of the Docker Engine differ by ${Math.round(Math.abs(info.clockAheadMs) / 1000)} s, so one of them is wrong: times of logs and containers cannot be compared with those of deployments`,
      remedy: 'let both machines follow a time server (timedatectl set-ntp true)'
    })
  return warnings
}

const isOlder = (apiVersion: string): boolean => {
  const version = semver.coerce(apiVersion)
  return version !== null && semver.lt(version, semver.coerce(oldestApi) ?? version)
}

/** Of an engine that does not say what it is. */
export function awayWarning(error: unknown): ConfigWarning {
  const problem = isProblem(error) ? error : undefined
  return {
    code: 'engine_unreachable',
    message: `nothing can be deployed, as the Docker Engine cannot be reached${problem === undefined ? '' : `: ${problem.message}`}`,
    remedy:
      typeof problem?.details.remedy === 'string'
        ? problem.details.remedy
        : 'start dockerd, or set DOCKER_HOST to the address that it listens on'
  }
}
