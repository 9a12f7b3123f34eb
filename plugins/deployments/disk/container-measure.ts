import type { EngineDisk } from 'busbar/api/builds'
import type {
  ContainerDiskUse,
  ContainerFileUse,
  ContainerRuntime,
  MeasuringLimits
} from 'busbar/api/containers'
import { bounded, type Log } from 'busbar/sdk'
import type { Baseline } from './baseline.js'
import { atLeast, byEngine, type Known, withFiles } from './disk-accounts.js'
import { type DiskRoom, type DiskUse, isLasting, isNearFloor } from './disk-use-decision.js'
import type { ProjectOwners } from './project-owners.js'
import type { Counting, Uncounted } from './uncounted.js'

export interface MeasureParts {
  readonly runtime: Pick<ContainerRuntime, 'diskUse' | 'fileUse'>
  readonly owners: Pick<ProjectOwners, 'renew' | 'of'>
  readonly uncounted: Uncounted
  readonly baseline: Pick<Baseline, 'at' | 'grownSince'>
  readonly log: Log
}

interface Measured {
  readonly found: readonly DiskUse[]
  /** By the engine's account; undefined where that was not asked for. */
  readonly known: readonly ContainerDiskUse[] | undefined
  readonly isCounted: boolean
  /** While nothing moved them, so that nothing could hide. */
  readonly isStill: boolean
}

/** For one container, and for all that have to be looked at then. */
const engineLimits: MeasuringLimits = { eachMs: 2000, allMs: 10_000 }
const countLimits: MeasuringLimits = { eachMs: 3000, allMs: 10_000 }
/** An engine that does not answer at all. */
const withinMs = 60_000
const ownersWithinMs = 2000
/** The first pauses between looks that stop everything for a moment, and the longest. */
const stillPauseMs = { first: 10_000, longest: 60_000 } as const

/** What containers have written. */
export class ContainerMeasure {
  readonly #parts: MeasureParts
  /** By container, what was found by the latest look. */
  #latest: ReadonlyMap<string, Known> = new Map()
  #isUncountable = false
  /** When files were last counted while nothing moved them. */
  #stillAt = Number.NEGATIVE_INFINITY
  #stillPauseMs = 0

  constructor(parts: MeasureParts) {
    this.#parts = parts
  }

  /** Somebody has given way, or there is room. */
  forgetStillPause(): void {
    this.#stillPauseMs = 0
  }

  /**
   * With room by the engine's account and, where that may leave out what is missing, by a look at the files themselves. Near
   * the floor by that alone: it knows all, and tells how long it may take.
   */
  async measure(
    room: DiskRoom | undefined,
    disk: EngineDisk | undefined,
    signal: AbortSignal
  ): Promise<Measured> {
    const { baseline, owners, uncounted } = this.#parts
    const isNear = room !== undefined && isNearFloor(room)
    const counting = uncounted.countingOf(room, disk)
    // Nobody's work is to stand still at each look, for as long as somebody keeps the disk short.
    const isStill = isNear && isLasting(room) && performance.now() - this.#stillAt >= this.#stillPauseMs
    let files = isNear ? await this.#count(counting, isStill, signal) : undefined
    if (isStill) {
      this.#stillAt = performance.now()
      this.#stillPauseMs = Math.min(stillPauseMs.longest, this.#stillPauseMs * 2 || stillPauseMs.first)
    }
    // Where inodes are short, it is not bytes that are missing.
    const isAsked = files === undefined && !(isNear && room.bytesPerInode !== undefined)
    const known = isAsked ? await this.#byEngine(signal) : undefined
    const isUnknown = known?.some(({ isLate }) => isLate) === true
    if (!isNear && (isUnknown || uncounted.isMissing(disk, known ?? [])))
      files = await this.#count(counting, false, signal)
    const uses = (files === undefined ? (known ?? []).map(byEngine) : withFiles(known ?? [], files)).map(
      use => atLeast(use, this.#latest.get(use.id))
    )
    this.#latest = new Map(uses.map(use => [use.id, use]))
    await bounded(async () => await owners.renew(uses.map(({ owner }) => owner.projectId)), {
      ms: ownersWithinMs,
      signal,
      what: 'the owners of projects'
    }).catch(() => signal.throwIfAborted())
    const found = uses.map(use => ({
      ...use,
      ownerId: owners.of(use.owner.projectId),
      grownBytes: baseline.grownSince(use)
    }))
    return { found, known, isCounted: files !== undefined, isStill: isStill && files !== undefined }
  }

  async #byEngine(signal: AbortSignal): Promise<readonly ContainerDiskUse[]> {
    return await bounded(async () => await this.#parts.runtime.diskUse({}, engineLimits), {
      ms: withinMs,
      signal,
      what: 'what containers have written'
    })
  }

  async #count(
    counting: Counting,
    still: boolean,
    signal: AbortSignal
  ): Promise<readonly ContainerFileUse[] | undefined> {
    const { baseline, runtime, log } = this.#parts
    const options = { ...countLimits, ...counting, since: baseline.at, still }
    try {
      const found = await bounded(async () => await runtime.fileUse({}, options), {
        ms: withinMs,
        signal,
        what: 'the files of containers'
      })
      this.#isUncountable = false
      return found
    } catch (error) {
      signal.throwIfAborted()
      if (!this.#isUncountable)
        log.warn(
          { err: error },
          'the files that applications have made, and those that are open without a name, cannot be counted: one that takes the disk by them is not found'
        )
      this.#isUncountable = true
      return undefined
    }
  }
}
