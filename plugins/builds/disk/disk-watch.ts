import type { MeasuringLimits } from 'busbar/api/containers'
import type { Clock, Log, Problem } from 'busbar/sdk'
import type { Disk } from '../admission/admission-decision.js'
import type { EngineBuildUsage, EngineFileUse } from '../engines/engine-usage.js'
import { CountTimes } from './count-times.js'
import {
  afterCopies,
  type DiskLimits,
  type DiskUser,
  decideDisk,
  isCertain,
  isShort,
  leftBy,
  longestLookMs,
  nextLookMs,
  noFiles,
  taken
} from './disk-decision.js'
import type { RoomMaker } from './room-maker.js'

interface DiskWatchParts {
  /** What each build has written that runs here; and what is handed over of each image. */
  readonly buildUsage: () => Promise<readonly EngineBuildUsage[]>
  /** What the files of each build take that runs here; asked for where it matters. */
  readonly buildFileUse: (
    options: MeasuringLimits & { readonly most: number }
  ) => Promise<readonly EngineFileUse[]>
  readonly clock: Clock
  readonly log: Log
  readonly limits: DiskLimits
  /** What is free now. */
  readonly disks: () => Promise<readonly Disk[]>
  readonly room: Pick<RoomMaker, 'make' | 'isDue' | 'isMaking'>
}

/** Near the floor, what was measured longer ago does not say who fills the disk now. */
const measureEveryMs = 1000
/** Elsewhere a build is only held to its own limit, and to measure it takes the engine's time from it. */
const measureFarEveryMs = 2000
/** To measure a build makes the engine look at each of its files: that may take this share of the time, while there is room. */
const measuringShare = 0.1
/** So long after it has ended, the engine may still be giving back what a cancelled one has taken. */
const givesBackMs = 5000
/** At the floor there is no time for more: what was measured last has to do then. */
const measureWithinMs = 250
/** So long nobody ends for what may be anybody's: by then files are counted. */
const countWithinMs = 5000
export const roomEveryMs = 10_000
const countLimits: MeasuringLimits = { eachMs: 2000, allMs: 5000 }
/** In one place of a build counting ends there: more tells nothing more. */
const mostFiles = 4_000_000
/** Of the floor: before that is reached, it takes time to remove unused data, and to count files. */
const roomFromShare = 1.5

interface Watched extends Omit<DiskUser, 'isEnding'> {
  readonly freeAtBegin: Map<string, number>
  freeAtSuspicion: Map<string, number>
  workspaceBytes: number
  readonly end: AbortController
  /** Of one that was cancelled here. */
  endedAt: number | undefined
  writtenBytes: number | undefined
  runningStepBytes: number
  isPartial: boolean
  isUncountable: boolean
  /** As `files.heldBytes`, of each that is measured. */
  heldBytes: number
  files: DiskUser['files']
  isCounted: boolean
}

/** Looks at the disks, and at what each build writes, while something is built or pulled by this process. */
export class DiskWatch {
  readonly #watched = new Map<string, Watched>()
  #underWay = 0
  #idle = new AbortController()
  #measuring: Promise<void> | undefined
  #measureAfter = 0
  #lastDisks: readonly Disk[] = []
  readonly #counts = new CountTimes()
  #isUncountable = false

  constructor(private readonly parts: DiskWatchParts) {}

  /**
   * Runs what is done for a deployment; the signal that it gets aborts with a problem when it has to end. It tells what
   * its checkout takes.
   */
  async during<T>(
    { id, ownerId, kind }: Pick<DiskUser, 'id' | 'ownerId' | 'kind'>,
    signal: AbortSignal,
    run: (signal: AbortSignal, onCheckoutSize: (bytes: number) => void) => Promise<T>
  ): Promise<T> {
    const disks = await this.parts.disks()
    const end = new AbortController()
    const watched: Watched = {
      id,
      ownerId,
      kind,
      end,
      endedAt: undefined,
      begunAt: performance.now(),
      workspaceBytes: 0,
      freeAtBegin: this.#freeWithout(disks),
      freeAtSuspicion: this.#freeWithout(disks),
      writtenBytes: undefined,
      runningStepBytes: 0,
      isPartial: true,
      isUncountable: false,
      heldBytes: 0,
      files: noFiles,
      isCounted: false
    }
    this.#watched.set(id, watched)
    this.#underWay += 1
    if (this.#underWay === 1) {
      this.#idle = new AbortController()
      void this.#look(this.#idle.signal)
    }
    let isMade = false
    try {
      const made = await run(AbortSignal.any([signal, end.signal]), bytes => {
        watched.workspaceBytes = bytes
      })
      isMade = true
      return made
    } finally {
      if (end.signal.aborted) watched.endedAt = performance.now()
      else await this.#forget(watched, isMade)
      this.#underWay -= 1
      if (this.#underWay === 0) {
        this.#watched.clear()
        this.#idle.abort()
      }
    }
  }

  /** What a deployment is known to have on the disks; 0 where nothing is known. */
  writtenBy(id: string): number {
    const {
      writtenBytes = 0,
      workspaceBytes = 0,
      heldBytes = 0,
      files = noFiles
    } = this.#watched.get(id) ?? {}
    return Math.max(writtenBytes, files.bytes, heldBytes) + workspaceBytes
  }

  /** False where it is not under way here, or ends already. */
  end(id: string, problem: Problem): boolean {
    const watched = this.#watched.get(id)
    if (watched === undefined || watched.end.signal.aborted) return false
    watched.end.abort(problem)
    return true
  }

  /** What would be free without the writes that are accounted for. */
  #freeWithout(disks: readonly Disk[]): Map<string, number> {
    const all = [...this.#watched.values()]
    return new Map(
      disks.map(disk => [disk.path, disk.freeBytes + all.reduce((sum, user) => sum + taken(user, disk), 0)])
    )
  }

  /** What it has made stays, or has left when it failed, and is not missing without a reason to those that go on. */
  async #forget(ended: Watched, isMade: boolean): Promise<void> {
    // What a failed one has given back is there again.
    const disks = isMade ? this.#lastDisks : await this.parts.disks().catch(() => this.#lastDisks)
    this.#watched.delete(ended.id)
    const { failedBytes } = this.parts.limits
    for (const disk of disks) {
      const left = leftBy(ended, disk, { isMade, failedBytes })
      for (const { freeAtBegin, freeAtSuspicion } of this.#watched.values())
        for (const free of [freeAtBegin, freeAtSuspicion])
          free.set(disk.path, (free.get(disk.path) ?? disk.freeBytes) - left)
    }
  }

  async #look(idle: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    while (!idle.aborted) {
      const disks = await this.#lookOnce().catch((error: unknown) => {
        log.debug({ err: error }, 'what builds write to the disk could not be looked at; trying again')
        return []
      })
      await clock.sleep(this.#nextLookMs(disks), idle).catch(() => {})
    }
  }

  async #lookOnce(): Promise<readonly Disk[]> {
    const { disks: read, limits, room } = this.parts
    for (const { id, endedAt = Infinity } of this.#watched.values())
      if (performance.now() > endedAt + givesBackMs) this.#watched.delete(id)
    let disks = await read()
    this.#lastDisks = disks
    const below = (share: number): boolean => isShort(disks, { floorBytes: limits.floorBytes * share })
    const isNear = this.#nextLookMs(disks) < longestLookMs
    if (isNear || performance.now() >= this.#measureAfter) this.#measuring ??= this.#measure()
    // Where there is only one, it is the one.
    if (isShort(disks, limits) && this.#watched.size > 1) {
      await this.#measuredSoon()
      disks = await read()
    }
    if (below(roomFromShare) && room.isDue(roomEveryMs)) void room.make(0)
    // Unused data is removed before a build is ended. Meanwhile there is a second floor, as for what a cancelled one gives back.
    if (below(1) && room.isMaking && !below(1 / 2)) return disks
    this.#counts.noteShort(below(1))
    // Nobody ends for what may be anybody's before files are counted: to end another one would not keep who has taken it
    // from the last of the disk either.
    const mayWait = below(1) && this.#watched.size > 1 && this.#counts.shortMs < countWithinMs
    if (mayWait && !this.#counts.isFresh && !isCertain(this.#users(), disks, limits)) return disks
    // What runs may have ended since it was measured: then its copy is part of what is missing by now.
    this.#decide(
      this.#users().map(user => ({ ...user, runningStepBytes: 0 })),
      disks
    )
    return disks
  }

  #users(): DiskUser[] {
    return [...this.#watched.values()].map(({ end, endedAt, ...user }) => ({
      ...user,
      isCounted: user.isCounted && this.#counts.isFresh,
      isEnding: end.signal.aborted
    }))
  }

  #decide(users: readonly DiskUser[], disks: readonly Disk[]): void {
    const verdict = decideDisk(users, disks, this.parts.limits)
    if (verdict === undefined) return
    this.#watched.get(verdict.id)?.end.abort(verdict.problem)
    this.#counts.noteShort(false)
  }

  #nextLookMs(disks: readonly Disk[]): number {
    return nextLookMs(afterCopies(disks, this.#users()), this.parts.limits)
  }

  async #measuredSoon(): Promise<void> {
    const done = new AbortController()
    await Promise.race([
      this.#measuring,
      this.parts.clock.sleep(measureWithinMs, done.signal).catch(() => {})
    ])
    done.abort()
  }

  async #measure(): Promise<void> {
    const { buildUsage, log, limits, disks: read } = this.parts
    const begunAt = performance.now()
    try {
      // Of the same moment: no step that is seen to run has been copied by then.
      const disks = await read()
      const usage = byDeployment(await buildUsage())
      for (const watched of this.#running()) {
        const { bytes, runningStepBytes, isPartial, heldBytes, isUncountable } = usage.get(watched.id) ?? {}
        watched.heldBytes = heldBytes ?? 0
        watched.isUncountable = isUncountable === true
        watched.writtenBytes = bytes ?? watched.writtenBytes
        watched.runningStepBytes = runningStepBytes ?? 0
        if (watched.kind === 'pull' && isPartial === true && !watched.isPartial)
          watched.freeAtSuspicion = this.#freeWithout(disks)
        watched.isPartial = isPartial ?? watched.isPartial
      }
      await this.#countFiles(disks)
      if (!isShort(disks, limits)) this.#decide(this.#users(), disks)
    } catch (error) {
      log.debug({ err: error }, 'what builds have written could not be measured')
    } finally {
      const now = performance.now()
      const isNear = this.#nextLookMs(this.#lastDisks) < longestLookMs
      const everyMs = isNear ? measureEveryMs : measureFarEveryMs
      this.#measureAfter = now + Math.max(everyMs, (now - begunAt) / measuringShare)
      this.#measuring = undefined
    }
  }

  /** Of one that was ended counts what it had: that comes back. */
  #running(): Watched[] {
    return [...this.#watched.values()].filter(({ end }) => !end.signal.aborted)
  }

  #forgetCount(): void {
    for (const watched of this.#running()) {
      watched.files = noFiles
      watched.isCounted = false
    }
  }

  /** Only where that decides: among several, with the disk nearly short. */
  async #countFiles(disks: readonly Disk[]): Promise<void> {
    const { buildFileUse, log, limits } = this.parts
    if (this.#watched.size < 2 || !isShort(disks, { floorBytes: limits.floorBytes * roomFromShare })) {
      this.#forgetCount()
      return
    }
    const begunAt = performance.now()
    if (!isShort(disks, limits) && !this.#counts.isDue) return
    try {
      const counted = filesByDeployment(await buildFileUse({ ...countLimits, most: mostFiles }))
      for (const watched of this.#running()) {
        const files = counted.get(watched.id)
        // Of one that takes long, no less than was found before.
        const { bytes, inodes } = files?.isCut === true ? watched.files : noFiles
        watched.files = {
          bytes: Math.max(bytes, files?.bytes ?? 0),
          inodes: Math.max(inodes, files?.inodes ?? 0),
          heldBytes: files?.heldBytes ?? 0
        }
        watched.isCounted = files?.isCut === false
      }
      this.#isUncountable = false
    } catch (error) {
      this.#forgetCount()
      if (!this.#isUncountable)
        log.warn(
          { err: error },
          'what builds hold in files without a name, and how many files they have made, cannot be counted: one that takes the disk by them is not found'
        )
      this.#isUncountable = true
    } finally {
      this.#counts.noteCount(begunAt)
    }
  }
}

function filesByDeployment(all: readonly EngineFileUse[]): ReadonlyMap<string, EngineFileUse> {
  return new Map(all.map(files => [files.owner.deploymentId ?? '', files]))
}

/** A build may be measured where it runs, and where its image is handed over. */
function byDeployment(
  all: readonly EngineBuildUsage[]
): ReadonlyMap<string, Omit<EngineBuildUsage, 'owner'>> {
  const usage = new Map<string, Omit<EngineBuildUsage, 'owner'>>()
  for (const { owner, bytes, runningStepBytes, isPartial, heldBytes = 0, isUncountable } of all) {
    const key = owner.deploymentId ?? ''
    const known = usage.get(key)
    usage.set(key, {
      bytes: bytes + (known?.bytes ?? 0),
      runningStepBytes: runningStepBytes + (known?.runningStepBytes ?? 0),
      isPartial: isPartial || known?.isPartial === true,
      heldBytes: heldBytes + (known?.heldBytes ?? 0),
      isUncountable: isUncountable === true || known?.isUncountable === true
    })
  }
  return usage
}
