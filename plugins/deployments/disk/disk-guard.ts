import type { EngineDisk, EngineDiskReader } from 'busbar/api/builds'
import { type Log, pause } from 'busbar/sdk'
import type { DeploymentStore } from '../records/deployment-store.js'
import { Baseline } from './baseline.js'
import { CacheClearing } from './cache-clearing.js'
import type { Clearance } from './clearance.js'
import { ContainerMeasure, type MeasureParts } from './container-measure.js'
import { type DiskRoom, type DiskVerdict, decideDiskUse, isNearFloor } from './disk-use-decision.js'
import { ImageLook, type ImageLookParts } from './image-look.js'
import { pauseMs } from './look-pauses.js'
import { ProjectOwners } from './project-owners.js'
import { Restarts } from './restarts.js'
import { Uncounted } from './uncounted.js'
import { type ExecutionParts, VerdictExecution } from './verdict-execution.js'

type DiskGuardParts = ExecutionParts &
  Pick<MeasureParts, 'runtime'> &
  Omit<ImageLookParts, 'owners'> & {
    readonly store: Pick<DeploymentStore, 'ownersOfProjects'>
    readonly engineDisk: EngineDiskReader
    readonly log: Log
  }

/** A container writes no faster than this for long: half of the time in which it would pass the floor may go by unseen. */
const bytesPerSecond = 2 * 2 ** 30
const shortestLookMs = 250
const longestLookMs = 5000
/** So much is missing, and it is time to see what has it; or this share of what a container may write. */
const tellingLoss = { bytes: 512 * 2 ** 20, share: 1 / 4 }
const measureEveryMs = 60_000

/**
 * Keeps what applications write to their own containers from taking the disk of all: most engines have no limit for
 * that. In one process of the installation.
 */
export class DiskGuard {
  readonly #parts: DiskGuardParts
  readonly #baseline: Baseline
  readonly #uncounted: Uncounted
  readonly #images: ImageLook
  readonly #clearing: CacheClearing
  readonly #containers: ContainerMeasure
  readonly #restarts = new Restarts()
  readonly #execution: VerdictExecution
  #measuredFree: number | undefined
  /** How long the latest measuring took, and when it ended. */
  #measured = { ms: 0, endedAt: Number.NEGATIVE_INFINITY }

  constructor(parts: DiskGuardParts) {
    const owners = new ProjectOwners(parts.store, parts.log)
    this.#parts = parts
    this.#baseline = new Baseline(parts.clock.now())
    this.#uncounted = new Uncounted(parts.limits)
    this.#images = new ImageLook({ ...parts, owners })
    this.#clearing = new CacheClearing(parts)
    this.#containers = new ContainerMeasure({
      ...parts,
      owners,
      uncounted: this.#uncounted,
      baseline: this.#baseline
    })
    this.#execution = new VerdictExecution({ ...parts, images: this.#images, restarts: this.#restarts })
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts
    while (!signal.aborted) {
      let nextMs = longestLookMs
      try {
        nextMs = await this.#look(signal)
      } catch (error) {
        if (!signal.aborted)
          log.debug(
            { err: error },
            'what applications write to the disk could not be looked at; trying again'
          )
      }
      await pause(clock, nextMs, signal)
    }
  }

  /** How long nothing has to be looked at then. */
  async #look(signal: AbortSignal): Promise<number> {
    const disk = await this.#parts.engineDisk.read()
    const room = this.#roomOf(disk)
    const clearance = this.#clearing.look(room)
    if (this.#isDue(room, disk, clearance)) await this.#enforce(room, disk, signal)
    if (disk === undefined) return longestLookMs
    const spare = disk.freeBytes - disk.floorBytes
    return Math.min(longestLookMs, Math.max(shortestLookMs, ((spare / bytesPerSecond) * 1000) / 2))
  }

  #roomOf(disk: EngineDisk | undefined): DiskRoom | undefined {
    return disk === undefined ? undefined : this.#baseline.roomOf(disk)
  }

  /** While caches go, what is measured says nothing of afterwards. Then somebody may have to give way. */
  #isDue(room: DiskRoom | undefined, disk: EngineDisk | undefined, clearance: Clearance['kind']): boolean {
    if (clearance === 'asked') return false
    const { ms, endedAt } = this.#measured
    const passedMs = performance.now() - endedAt
    const lostBytes = room === undefined ? 0 : (this.#measuredFree ?? room.freeBytes) - room.freeBytes
    if (passedMs < pauseMs({ tookMs: ms, isNear: isNear(room), lostBytes })) return false
    if (clearance === 'over' || passedMs >= measureEveryMs || this.#uncounted.hasLostInodes(disk)) return true
    return room !== undefined && lostBytes >= this.#tellingLoss
  }

  async #enforce(
    room: DiskRoom | undefined,
    disk: EngineDisk | undefined,
    signal: AbortSignal
  ): Promise<void> {
    const begunAt = performance.now()
    const measuredAt = this.#parts.clock.now()
    const measured = await this.#containers.measure(room, disk, signal).finally(() => {
      const endedAt = performance.now()
      this.#measured = { ms: endedAt - begunAt, endedAt }
    })
    const { found, known, isCounted, isStill } = measured
    const after = this.#roomOf(await this.#parts.engineDisk.read().catch(() => undefined)) ?? room
    const decided = isNear(room) ? decidedBy(room, after, isStill) : room
    const verdicts = decideDiskUse(
      found,
      this.#parts.limits,
      decided,
      this.#restarts.at(begunAt),
      decided === undefined ? undefined : await this.#images.read(found, decided, signal)
    )
    for (const verdict of verdicts) await this.#give(verdict, decided)
    // What went meanwhile may not be among what was measured, and what came back is there to be lost.
    this.#measuredFree =
      room === undefined ? undefined : Math.max(room.freeBytes, after?.freeBytes ?? room.freeBytes)
    this.#uncounted.note(disk, known, isCounted)
    // What has gone gives room: soon seen.
    if (verdicts.length > 0) {
      this.#measured = { ms: 0, endedAt: performance.now() }
      this.#containers.forgetStillPause()
    }
    if (this.#baseline.isKnown && (isNear(room) || isNear(after))) return
    this.#restarts.noteRoom()
    this.#containers.forgetStillPause()
    this.#images.noteRoom()
    // There was room before containers were measured, and after: what somebody has just taken was not always there.
    this.#baseline.note(found, after, measuredAt)
  }

  async #give(verdict: DiskVerdict, room: DiskRoom | undefined): Promise<void> {
    await this.#execution
      .execute(verdict, room)
      .catch((error: unknown) =>
        this.#parts.log.warn(
          { err: error, ...ownerOf(verdict) },
          verdict.kind === 'release'
            ? `the image ${verdict.image.reference}, which nothing runs from, could not be removed`
            : 'an application that takes too much of the disk could not be stopped; trying again'
        )
      )
  }

  get #tellingLoss(): number {
    const { bytes } = this.#parts.limits
    return bytes === 0 ? tellingLoss.bytes : Math.min(tellingLoss.bytes, bytes * tellingLoss.share)
  }
}

const isNear = (room: DiskRoom | undefined): room is DiskRoom => room !== undefined && isNearFloor(room)

/**
 * By what is free after containers were measured, as caches may have given back enough, or somebody goes on. What had gone until then
 * is what they can have taken: they were measured after that. And that it stays short decides nothing unless nothing could hide.
 */
const decidedBy = (before: DiskRoom, after: DiskRoom | undefined, isStill: boolean): DiskRoom => ({
  ...before,
  freeBytes: after?.freeBytes ?? before.freeBytes,
  shortMs: isStill ? before.shortMs : 0
})

const ownerOf = (verdict: DiskVerdict) =>
  verdict.kind === 'release' ? { applicationId: verdict.image.applicationId } : verdict.use.owner
