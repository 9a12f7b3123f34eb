import type { Problem } from 'busbar/sdk'
import type { AdmissionVerdict, BuildLimits, BuildQueue, RunningBuild, WaitCause, WaitingBuild } from './api.js'
import { amount, counted } from './admission-words.js'
import { problems } from './problems.js'
import { buildSlots, type BuildSettings } from './settings.js'

/** What is free, as far as it can be known. */
export interface Machine {
  readonly cores: number
  readonly memoryBytes: number
  /** Without swapping; undefined where the builds run on another machine. */
  readonly availableBytes: number | undefined
  /** The limit on the platform's own processes: a build is fetched and sent by them. */
  readonly own: { readonly limitBytes: number, readonly usedBytes: number } | undefined
  readonly disks: readonly Disk[]
  /** Undefined where the kernel does not tell. */
  readonly pressure: Pressure | undefined
}

export interface Disk {
  /** Completes "… are free on". */
  readonly what: string
  readonly path: string
  readonly freeBytes: number
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
const patienceMs = 60_000
/** Beyond these another build would only slow down the ones that run. */
const crowded: Pressure = { cpuSome: 80, memoryFull: 5, ioFull: 30 }
/** Beyond this even the only build waits a while: the machine is busy with looking for memory. */
const thrashingFull = 20

/**
 * Whether one more build may begin, beside those that run. Nothing is waited for that may never come: when
 * nothing runs, only a short disk is in the way for ever, and that is refused with its remedy.
 */
export function decide ({ machine, running, settings, waitedMs }: {
  readonly machine: Machine
  readonly running: readonly RunningBuild[]
  readonly settings: BuildSettings
  readonly waitedMs: number
}): AdmissionVerdict {
  const short = shortDisk(machine, settings)
  if (short !== undefined) return { kind: 'refuse', problem: short }
  const slots = buildSlots(settings, machine)
  const need = slots.each.memoryBytes
  const isAlone = running.length === 0
  const isPatient = isAlone && waitedMs >= patienceMs
  if (running.length >= slots.count) return wait('builds', `another build to end: ${areRunning(running)}, and this machine takes ${slots.count} at once`)

  const promised = running.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)
  const over = promised + need - slots.memoryBytes
  if (!isAlone && over > 0) return wait('memory', `${amount(over)} of memory: ${areRunning(running)}`)

  const { own } = machine
  if (own !== undefined && own.limitBytes - own.usedBytes < ownHeadroomBytes && !isPatient) {
    return wait('memory', `memory for the platform itself, which uses ${amount(own.usedBytes)} of its limit of ${amount(own.limitBytes)}: ${areRunning(running)}`)
  }
  if (!isPatient) {
    const pressure = underPressure(machine.pressure, isAlone)
    if (pressure !== undefined) return wait('pressure', `the machine to calm down, as ${pressure}: ${areRunning(running)}`)
  }
  return withinMemory({ machine, running, limits: slots.each, promised, reserveBytes: slots.reserveBytes, isPatient })
}

/**
 * Running builds are counted with all they were promised, although part of it is in use and missing from what
 * is free already: they may still take the rest, and then the applications would pay for it.
 */
function withinMemory ({ machine: { availableBytes }, running, limits, promised, reserveBytes, isPatient }: {
  readonly machine: Machine
  readonly running: readonly RunningBuild[]
  readonly limits: BuildLimits
  readonly promised: number
  readonly reserveBytes: number
  readonly isPatient: boolean
}): AdmissionVerdict {
  const admit = (memoryBytes: number, note: string | null = null): AdmissionVerdict => ({ kind: 'admit', limits: { ...limits, memoryBytes }, note })
  if (availableBytes === undefined) return admit(limits.memoryBytes)
  const spare = Math.max(0, availableBytes - reserveBytes - promised)
  if (spare >= limits.memoryBytes) return admit(limits.memoryBytes)
  if (running.length > 0) return wait('memory', `${amount(limits.memoryBytes - spare)} of memory: ${areRunning(running)}`)
  const least = Math.min(leastMemoryBytes, limits.memoryBytes)
  if (spare >= least) return admit(spare, `Only ${amount(availableBytes)} of memory are free, so this build may use ${amount(spare)} instead of ${amount(limits.memoryBytes)}`)
  if (isPatient) {
    return admit(least, `Only ${amount(availableBytes)} of memory are free: the build begins with ${amount(least)}, and applications may be slowed down meanwhile`)
  }
  return wait('memory', `${amount(least - spare)} of memory: only ${amount(availableBytes)} are free, ${amount(reserveBytes)} of which are left to the platform and the applications`)
}

/** Why nothing may be built or pulled; undefined when no disk is short. */
export function shortDisk ({ disks }: Pick<Machine, 'disks'>, { disk_floor_mib: floor }: Pick<BuildSettings, 'disk_floor_mib'>): Problem | undefined {
  const short = disks.find(({ freeBytes }) => freeBytes < floor * mebibyte)
  return short === undefined ? undefined : problems.diskShort({ free: amount(short.freeBytes), what: short.what, path: short.path, floor: amount(floor * mebibyte) })
}

function underPressure (pressure: Pressure | undefined, isAlone: boolean): string | undefined {
  if (pressure === undefined) return undefined
  if (pressure.memoryFull >= (isAlone ? thrashingFull : crowded.memoryFull)) return `its memory is used up (everything waited for it ${percent(pressure.memoryFull)} of the time)`
  if (isAlone) return undefined
  if (pressure.ioFull >= crowded.ioFull) return `its disks are busy (everything waited for them ${percent(pressure.ioFull)} of the time)`
  if (pressure.cpuSome >= crowded.cpuSome) return `its processors are busy (work waited for them ${percent(pressure.cpuSome)} of the time)`
  return undefined
}

/**
 * Verdicts on everything that waits, in the order in which it is to begin. Only the first that has to wait
 * waits for the machine; those behind it wait for their turn, or small waits would be overtaken for ever.
 */
export function decideQueue (queue: BuildQueue, { machine, settings, now }: { readonly machine: Machine, readonly settings: BuildSettings, readonly now: Date }): ReadonlyMap<string, AdmissionVerdict> {
  const verdicts = new Map<string, AdmissionVerdict>()
  const running = [...queue.running]
  let isBlocked = false
  let waiting = [...queue.waiting]
  const lastAdmitted = new Map(queue.lastAdmitted)
  while (waiting.length > 0) {
    const next = firstInTurn(waiting, running, lastAdmitted)
    waiting = waiting.filter(build => build !== next)
    const waitedMs = now.getTime() - next.since.getTime()
    const verdict: AdmissionVerdict = isBlocked ? inTurn(running.length, [...verdicts.values()].filter(({ kind }) => kind === 'wait').length) : decide({ machine, running, settings, waitedMs })
    if (verdict.kind === 'admit') {
      running.push({ id: next.id, projectId: next.projectId, memoryBytes: verdict.limits.memoryBytes })
      lastAdmitted.set(next.projectId, now)
    }
    verdicts.set(next.id, limited(verdict, waitedMs, settings))
    isBlocked ||= verdict.kind === 'wait'
    if (isBlocked) lastAdmitted.set(next.projectId, new Date(now.getTime() + verdicts.size))
  }
  return verdicts
}

/** Projects take turns: the one with the fewest builds under way, then the one whose last turn is longest ago; within it, who came first. */
function firstInTurn (waiting: readonly WaitingBuild[], running: readonly RunningBuild[], lastAdmitted: ReadonlyMap<string, Date>): WaitingBuild {
  const rank = ({ id, projectId, since }: WaitingBuild): readonly [number, number, number, string] =>
    [running.filter(build => build.projectId === projectId).length, lastAdmitted.get(projectId)?.getTime() ?? 0, since.getTime(), id]
  return waiting.reduce((first, build) => isBefore(rank(build), rank(first)) ? build : first)
}

function isBefore (a: ReadonlyArray<number | string>, b: ReadonlyArray<number | string>): boolean {
  for (const [index, value] of a.entries()) {
    const other = b[index]
    if (other === undefined || value === other) continue
    return value < other
  }
  return false
}

/** A wait that lasts too long ends with what was short. */
function limited (verdict: AdmissionVerdict, waitedMs: number, { wait_minutes: minutes }: BuildSettings): AdmissionVerdict {
  if (verdict.kind !== 'wait' || waitedMs < minutes * 60_000) return verdict
  return { kind: 'refuse', problem: problems.waitedTooLong({ minutes, reason: verdict.reason, remedy: remedies[verdict.cause] }) }
}

const remedies: Readonly<Record<WaitCause, string>> = {
  builds: 'cancel a build that is stuck, or raise the setting concurrent of the builds plugin',
  turn: 'cancel builds that are not needed, or raise the setting concurrent of the builds plugin',
  memory: 'stop or limit applications that use much memory, lower memory_mib or reserve_mib of the builds plugin, or give the machine more memory',
  pressure: 'look for what keeps the machine busy (docker stats), and deploy again when it is calmer'
}

const wait = (cause: WaitCause, reason: string): AdmissionVerdict => ({ kind: 'wait', cause, reason: `waiting for ${reason}` })

const inTurn = (running: number, ahead: number): AdmissionVerdict =>
  wait('turn', `its turn: ${counted(running, 'build is running', 'builds are running')}, and ${counted(ahead, 'waits', 'wait')} before it`)

const areRunning = ({ length }: readonly RunningBuild[]): string => length === 0 ? 'no build is running' : counted(length, 'build is running', 'builds are running')

const percent = (value: number): string => `${Math.round(value)} %`
