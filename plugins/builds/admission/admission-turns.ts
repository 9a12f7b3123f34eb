import type { AdmissionVerdict, BuildQueue, RunningBuild, WaitCause, WaitingBuild } from '../api.js'
import { problems } from '../problems.js'
import type { BuildSettings } from '../settings.js'
import { decide, type Machine, wait } from './admission-decision.js'
import { counted } from './admission-words.js'

/**
 * Verdicts on everything that waits, in the order in which it is to begin. Only the first that has to wait
 * waits for the machine; those behind it wait for their turn, or small waits would be overtaken for ever.
 */
export function decideQueue(
  queue: BuildQueue,
  {
    machine,
    isMakingRoom,
    settings,
    now
  }: {
    readonly machine: Machine
    readonly isMakingRoom?: boolean
    readonly settings: BuildSettings
    readonly now: Date
  }
): ReadonlyMap<string, AdmissionVerdict> {
  const verdicts = new Map<string, AdmissionVerdict>()
  const running = [...queue.running]
  let isBlocked = false
  let waiting = [...queue.waiting]
  const lastAdmitted = new Map(queue.lastAdmitted)
  while (waiting.length > 0) {
    const next = firstInTurn(waiting, running, lastAdmitted)
    waiting = waiting.filter(build => build !== next)
    const waitedMs = now.getTime() - next.since.getTime()
    const verdict: AdmissionVerdict = isBlocked
      ? inTurn(running.length, [...verdicts.values()].filter(({ kind }) => kind === 'wait').length)
      : decide({ machine, isMakingRoom, running, settings, waitedMs })
    if (verdict.kind === 'admit') {
      const { id, projectId, ownerId } = next
      running.push({ id, projectId, ownerId, memoryBytes: verdict.limits.memoryBytes })
      for (const turn of [projectId, ownerOf(next)]) lastAdmitted.set(turn, now)
    }
    verdicts.set(next.id, limited(verdict, waitedMs, settings))
    isBlocked ||= verdict.kind === 'wait'
    // Those that wait are listed as they would take their turns.
    if (isBlocked)
      for (const turn of [next.projectId, ownerOf(next)])
        lastAdmitted.set(turn, new Date(now.getTime() + verdicts.size))
  }
  return verdicts
}

const ownerOf = ({ projectId, ownerId = projectId }: WaitingBuild | RunningBuild): string => ownerId

/**
 * Owners of projects take turns, and so do the projects of one: who has the fewest builds under way, then whose last
 * turn is longest ago; within a project, who came first. Every user can make projects, and each new one has had no turn.
 */
function firstInTurn(
  waiting: readonly WaitingBuild[],
  running: readonly RunningBuild[],
  lastAdmitted: ReadonlyMap<string, Date>
): WaitingBuild {
  const rank = (build: WaitingBuild): ReadonlyArray<number | string> => [
    running.filter(one => ownerOf(one) === ownerOf(build)).length,
    lastAdmitted.get(ownerOf(build))?.getTime() ?? 0,
    ...rankInOwner(build)
  ]
  const rankInOwner = ({ id, projectId, since }: WaitingBuild): ReadonlyArray<number | string> => [
    running.filter(build => build.projectId === projectId).length,
    lastAdmitted.get(projectId)?.getTime() ?? 0,
    since.getTime(),
    id
  ]
  return waiting.reduce((first, build) => (isBefore(rank(build), rank(first)) ? build : first))
}

function isBefore(a: ReadonlyArray<number | string>, b: ReadonlyArray<number | string>): boolean {
  for (const [index, value] of a.entries()) {
    const other = b[index]
    if (other === undefined || value === other) continue
    return value < other
  }
  return false
}

/** A wait that lasts too long ends with what was short. */
function limited(
  verdict: AdmissionVerdict,
  waitedMs: number,
  { wait_minutes: minutes }: BuildSettings
): AdmissionVerdict {
  if (verdict.kind !== 'wait' || waitedMs < minutes * 60_000) return verdict
  return {
    kind: 'refuse',
    problem: problems.waitedTooLong({ minutes, reason: verdict.reason, remedy: remedies[verdict.cause] })
  }
}

const remedies: Readonly<Record<WaitCause, string>> = {
  builds: 'cancel a build that is stuck, or raise the setting concurrent of the builds plugin',
  disk: 'free space on the disk, or look at why the engine takes so long to remove images',
  turn: 'cancel builds that are not needed, or raise the setting concurrent of the builds plugin',
  memory:
    'stop or limit applications that use much memory, lower memory_mib or reserve_mib of the builds plugin, or give the machine more memory',
  pressure: 'look for what keeps the machine busy (docker stats), and deploy again when it is calmer'
}

const inTurn = (running: number, ahead: number): AdmissionVerdict =>
  wait(
    'turn',
    `its turn: ${counted(running, 'build is running', 'builds are running')}, and ${counted(ahead, 'waits', 'wait')} before it`
  )
