import type { Problem } from 'busbar/sdk'
import type { AdmissionVerdict, BuildLimits, RunningBuild, WaitCause } from '../api.js'
import { problems } from '../problems.js'
import { type BuildSettings, buildSlots } from '../settings.js'
import { amount, counted } from './admission-words.js'

/** What is free, as far as it can be known. */
export interface Machine {
  readonly cores: number
  readonly memoryBytes: number
  /** Without swapping; undefined where the builds run on another machine. */
  readonly availableBytes: number | undefined
  /** The limit on the platform's own processes: a build is fetched and sent by them. */
  readonly own: { readonly limitBytes: number; readonly usedBytes: number } | undefined
  readonly disks: readonly Disk[]
  /** Undefined where the kernel does not tell. */
  readonly pressure: Pressure | undefined
}

export interface Disk {
  /** Completes "… are free on". */
  readonly what: string
  readonly path: string
  /** By its bytes, or by its inodes where those end first: as many small files take them. */
  readonly freeBytes: number
  /** What one inode counts as; absent where they do not end. */
  readonly bytesPerInode?: number
  readonly freeInodes?: number
  /** The engine keeps its images and containers there. */
  readonly isEngines: boolean
}

/** PSI: how much of the last ten seconds work waited, in per cent. `full`: all of it at once. */
export interface Pressure {
  readonly cpuSome: number
  readonly memoryFull: number
  readonly ioFull: number
}

const mebibyte = 2 ** 20
/** A lone build gets what is there, but is not begun with less than this. */
const leastMemoryBytes = 256 * mebibyte
/** The platform's own processes need this much for a fetch. */
const ownHeadroomBytes = 64 * mebibyte
/** A machine that never has what a build needs gets it begun nevertheless, after this long, when nothing else is built. */
const longWaitMs = 60_000
/** Beyond these another build would only slow down the ones that run. */
const crowded: Pressure = { cpuSome: 80, memoryFull: 5, ioFull: 30 }
/** Beyond this even the only build waits a while: the machine is busy with looking for memory. */
const thrashingFull = 20

/**
 * Whether one more build may begin, beside those that run. Nothing is waited for that may never come: when
 * nothing runs, only a short disk is in the way for ever, and that is refused with its remedy.
 */
export function decide({
  machine,
  isMakingRoom = false,
  running,
  settings,
  waitedMs
}: {
  readonly machine: Machine
  /** Unused data is being removed from its disks. */
  readonly isMakingRoom?: boolean
  readonly running: readonly RunningBuild[]
  readonly settings: BuildSettings
  readonly waitedMs: number
}): AdmissionVerdict {
  const short = shortDisk(machine, settings)
  if (short !== undefined) {
    if (isMakingRoom) return wait('disk', 'room on the disk: what no build needs any more is being removed')
    // What they have taken they give back when they end, or are stopped for it.
    if (running.length > 0) return wait('disk', `room on the disk: ${areRunning(running)}`)
    return { kind: 'refuse', problem: short }
  }
  const slots = buildSlots(settings, machine)
  const need = slots.each.memoryBytes
  const isAlone = running.length === 0
  const hasWaitedLong = isAlone && waitedMs >= longWaitMs
  if (running.length >= slots.count)
    return wait(
      'builds',
      `another build to end: ${areRunning(running)}, and this machine takes ${slots.count} at once`
    )

  const promised = running.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)
  const over = promised + need - slots.memoryBytes
  if (!isAlone && over > 0) return wait('memory', `${amount(over)} of memory: ${areRunning(running)}`)

  const { own } = machine
  if (own !== undefined && own.limitBytes - own.usedBytes < ownHeadroomBytes && !hasWaitedLong) {
    return wait(
      'memory',
      `memory for the platform itself, which uses ${amount(own.usedBytes)} of its limit of ${amount(own.limitBytes)}: ${areRunning(running)}`
    )
  }
  if (!hasWaitedLong) {
    const pressure = underPressure(machine.pressure, isAlone)
    if (pressure !== undefined)
      return wait('pressure', `the machine to calm down, as ${pressure}: ${areRunning(running)}`)
  }
  return withinMemory({
    machine,
    running,
    limits: slots.each,
    promised,
    reserveBytes: slots.reserveBytes,
    hasWaitedLong
  })
}

/**
 * Running builds are counted with all they were promised, although part of it is in use and missing from what
 * is free already: they may still take the rest, and then the applications would pay for it.
 */
function withinMemory({
  machine: { availableBytes },
  running,
  limits,
  promised,
  reserveBytes,
  hasWaitedLong
}: {
  readonly machine: Machine
  readonly running: readonly RunningBuild[]
  readonly limits: BuildLimits
  readonly promised: number
  readonly reserveBytes: number
  readonly hasWaitedLong: boolean
}): AdmissionVerdict {
  const admit = (memoryBytes: number, note: string | null = null): AdmissionVerdict => ({
    kind: 'admit',
    limits: { ...limits, memoryBytes },
    note
  })
  if (availableBytes === undefined) return admit(limits.memoryBytes)
  const spare = Math.max(0, availableBytes - reserveBytes - promised)
  if (spare >= limits.memoryBytes) return admit(limits.memoryBytes)
  if (running.length > 0)
    return wait('memory', `${amount(limits.memoryBytes - spare)} of memory: ${areRunning(running)}`)
  const least = Math.min(leastMemoryBytes, limits.memoryBytes)
  if (spare >= least)
    return admit(
      spare,
      `Only ${amount(availableBytes)} of memory are free, so this build may use ${amount(spare)} instead of ${amount(limits.memoryBytes)}`
    )
  if (hasWaitedLong) {
    return admit(
      least,
      `Only ${amount(availableBytes)} of memory are free: the build begins with ${amount(least)}, and applications may be slowed down meanwhile`
    )
  }
  return wait(
    'memory',
    `${amount(least - spare)} of memory: only ${amount(availableBytes)} are free, ${amount(reserveBytes)} of which are left to the platform and the applications`
  )
}

/** Why nothing may be built or pulled; undefined when no disk is short. */
export function shortDisk(
  { disks }: Pick<Machine, 'disks'>,
  { disk_floor_mib: floor }: Pick<BuildSettings, 'disk_floor_mib'>
): Problem | undefined {
  const short = disks.find(({ freeBytes }) => freeBytes < floor * mebibyte)
  return short === undefined
    ? undefined
    : problems.diskShort({
        free: amount(short.freeBytes),
        what: short.what,
        path: short.path,
        floor: amount(floor * mebibyte)
      })
}

function underPressure(pressure: Pressure | undefined, isAlone: boolean): string | undefined {
  if (pressure === undefined) return undefined
  if (pressure.memoryFull >= (isAlone ? thrashingFull : crowded.memoryFull))
    return `its memory is used up (everything waited for it ${percent(pressure.memoryFull)} of the time)`
  if (isAlone) return undefined
  if (pressure.ioFull >= crowded.ioFull)
    return `its disks are busy (everything waited for them ${percent(pressure.ioFull)} of the time)`
  if (pressure.cpuSome >= crowded.cpuSome)
    return `its processors are busy (work waited for them ${percent(pressure.cpuSome)} of the time)`
  return undefined
}

export const wait = (cause: WaitCause, reason: string): AdmissionVerdict => ({
  kind: 'wait',
  cause,
  reason: `waiting for ${reason}`
})

const areRunning = ({ length }: readonly RunningBuild[]): string =>
  length === 0 ? 'no build is running' : counted(length, 'build is running', 'builds are running')

const percent = (value: number): string => `${Math.round(value)} %`
