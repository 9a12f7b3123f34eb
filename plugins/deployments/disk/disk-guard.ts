import type { BuildLogLine, EngineDisk, EngineDiskReader, PreparedImages } from 'busbar/api/builds'
import type {
  ContainerDiskUse,
  ContainerFileUse,
  ContainerRuntime,
  MeasuringLimits
} from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'
import { type Bus, bounded, type Clock, type Log, pause, type Secrets } from 'busbar/sdk'
import { openBuildLog } from '../records/build-log.js'
import type { DeploymentLogStore } from '../records/deployment-log-store.js'
import type { DeploymentStore } from '../records/deployment-store.js'
import { atLeast, byEngine, growthOf, type Known, withFiles } from './disk-accounts.js'
import {
  type DiskRoom,
  type DiskUse,
  type DiskUseLimits,
  type DiskVerdict,
  decideDiskUse,
  isLasting,
  isNearFloor,
  isTelling,
  type KnownStores,
  noStores
} from './disk-use-decision.js'
import { backReason, reasonOf, releaseReason } from './disk-use-words.js'
import { ImageLook } from './image-look.js'
import type { ImageRecords } from './image-records.js'
import { pauseMs } from './look-pauses.js'
import { ProjectOwners } from './project-owners.js'
import { Restarts } from './restarts.js'
import { type Counting, Uncounted } from './uncounted.js'

interface DiskGuardParts {
  readonly store: Pick<DeploymentStore, 'change' | 'ownersOfProjects'>
  readonly logs: DeploymentLogStore
  readonly runtime: Pick<ContainerRuntime, 'diskUse' | 'fileUse' | 'stop' | 'restart' | 'remove'>
  readonly imageService: Pick<ImageService, 'imageUse'>
  readonly prepared: Pick<PreparedImages, 'fetched' | 'release'>
  readonly imageRecords: Pick<ImageRecords, 'ownersOf' | 'of'>
  readonly engineDisk: EngineDiskReader
  readonly bus: Bus
  readonly secrets: Pick<Secrets, 'clean'>
  readonly clock: Clock
  readonly log: Log
  readonly limits: DiskUseLimits
}

/** A container writes no faster than this for long: half of the time in which it would pass the floor may go by unseen. */
const bytesPerSecond = 2 * 2 ** 30
const shortestLookMs = 250
const longestLookMs = 5000
/** So much is missing, and it is time to see what has it; or this share of what a container may write. */
const tellingLoss = { bytes: 512 * 2 ** 20, share: 1 / 4 }
const measureEveryMs = 60_000
/** For one container, and for all that have to be looked at then. */
const engineLimits: MeasuringLimits = { eachMs: 2000, allMs: 10_000 }
const countLimits: MeasuringLimits = { eachMs: 3000, allMs: 10_000 }
/** An engine that does not answer at all. */
const measureWithinMs = 60_000
const ownersWithinMs = 2000
/** Before anybody loses something, so long caches are waited for that go. */
const roomWithinMs = 10_000
const roomLookMs = 250
/** It goes on writing meanwhile. */
const stopGraceSeconds = 5
const watchPauseMs = 50
/** The first pauses between looks that stop everything for a moment, and the longest. */
const stillPauseMs = { first: 10_000, longest: 60_000 } as const

/**
 * Keeps what applications write to their own containers from taking the disk of all: most engines have no limit for
 * that. In one process of the installation.
 */
export class DiskGuard {
  readonly #parts: DiskGuardParts
  /** By container, when the disk was last seen with room, or for the first time. */
  #baseline: ReadonlyMap<string, number> = new Map()
  #freeThen: number | undefined
  #roomyAt: Date
  readonly #uncounted: Uncounted
  readonly #owners: ProjectOwners
  readonly #images: ImageLook
  /** By container, what was found by the latest look. */
  #latest: ReadonlyMap<string, Known> = new Map()
  #isUncountable = false
  #measuredFree: number | undefined
  /** How long the latest measuring took, and when it ended. */
  #measured = { ms: 0, endedAt: Number.NEGATIVE_INFINITY }
  #shortSince: number | undefined
  readonly #restarts = new Restarts()
  /** When files were last counted while nothing moved them. */
  #stillAt = Number.NEGATIVE_INFINITY
  #stillPauseMs = 0

  constructor(parts: DiskGuardParts) {
    this.#parts = parts
    this.#roomyAt = parts.clock.now()
    this.#uncounted = new Uncounted(parts.limits)
    this.#owners = new ProjectOwners(parts.store, parts.log)
    this.#images = new ImageLook({ ...parts, owners: this.#owners })
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
    const room = disk === undefined ? undefined : this.#roomOf(disk)
    if (this.#isDue(room, disk)) await this.#enforce(room, disk, signal)
    if (disk === undefined) return longestLookMs
    const spare = disk.freeBytes - disk.floorBytes
    return Math.min(longestLookMs, Math.max(shortestLookMs, ((spare / bytesPerSecond) * 1000) / 2))
  }

  #roomOf({ freeBytes, floorBytes, inodes }: EngineDisk): DiskRoom {
    const now = performance.now()
    this.#shortSince = freeBytes < floorBytes ? (this.#shortSince ?? now) : undefined
    const endsByInodes = inodes !== undefined && Math.floor(inodes.free * inodes.bytesEach) <= freeBytes
    return {
      freeBytes,
      floorBytes,
      lostBytes: Math.max(0, (this.#freeThen ?? freeBytes) - freeBytes),
      shortMs: this.#shortSince === undefined ? 0 : now - this.#shortSince,
      ...(endsByInodes ? { bytesPerInode: inodes.bytesEach } : {})
    }
  }

  #isDue(room: DiskRoom | undefined, disk: EngineDisk | undefined): boolean {
    const { ms, endedAt } = this.#measured
    const passedMs = performance.now() - endedAt
    const isNear = room !== undefined && isNearFloor(room)
    const lostBytes = room === undefined ? 0 : (this.#measuredFree ?? room.freeBytes) - room.freeBytes
    if (passedMs < pauseMs({ tookMs: ms, isNear, lostBytes })) return false
    if (isNear || passedMs >= measureEveryMs || this.#uncounted.hasLostInodes(disk)) return true
    return room !== undefined && lostBytes >= this.#tellingLoss
  }

  async #enforce(
    room: DiskRoom | undefined,
    disk: EngineDisk | undefined,
    signal: AbortSignal
  ): Promise<void> {
    const { log, limits } = this.#parts
    const begunAt = performance.now()
    const measuredAt = this.#parts.clock.now()
    const isNear = room !== undefined && isNearFloor(room)
    const whenRoomy = isNear ? this.#parts.engineDisk.makeRoom().catch(() => {}) : undefined
    const measured = await this.#measure(room, disk, signal).finally(() => {
      const endedAt = performance.now()
      this.#measured = { ms: endedAt - begunAt, endedAt }
    })
    const { found, known, isCounted, isStill } = measured
    const decide = (now: DiskRoom | undefined, stores: KnownStores): readonly DiskVerdict[] =>
      decideDiskUse(
        found,
        limits,
        // That it stays short decides nothing unless nothing could hide.
        now === undefined || isStill ? now : { ...now, shortMs: 0 },
        this.#restarts.at(begunAt),
        stores
      )
    let verdicts = decide(room, measured.stores)
    if (room !== undefined && verdicts.some(costs)) {
      // Nobody loses for what is only a cache of somebody.
      room = await this.#roomAfter(whenRoomy, room, signal)
      verdicts = decide(room, await this.#images.read(found, room, signal))
    }
    for (const verdict of verdicts) {
      // Those before it, and whoever else, may have given back enough.
      if (verdict.kind === 'remove' && room !== undefined && !isNearFloor(await this.#roomNow(room))) continue
      await this.#execute(verdict, room).catch((error: unknown) =>
        log.warn(
          { err: error, ...ownerOf(verdict) },
          verdict.kind === 'release'
            ? `the image ${verdict.image.reference}, which nothing runs from, could not be removed`
            : 'an application that takes too much of the disk could not be stopped; trying again'
        )
      )
    }
    this.#measuredFree = room?.freeBytes
    this.#uncounted.note(disk, known, isCounted)
    // What has gone gives room: soon seen.
    if (verdicts.length > 0) {
      this.#measured = { ms: 0, endedAt: performance.now() }
      this.#stillPauseMs = 0
    }
    if (this.#freeThen !== undefined && room !== undefined && isNearFloor(room)) return
    this.#restarts.noteRoom()
    this.#stillPauseMs = 0
    this.#images.noteRoom()
    this.#baseline = new Map(found.map(({ id, bytes }) => [id, bytes]))
    this.#freeThen = room?.freeBytes
    this.#roomyAt = measuredAt
  }

  /**
   * With room by the engine's account and, where that may leave out what is missing, by a look at the files themselves. Near
   * the floor by that alone: it knows all, and tells how long it may take.
   */
  async #measure(
    room: DiskRoom | undefined,
    disk: EngineDisk | undefined,
    signal: AbortSignal
  ): Promise<{
    readonly found: readonly DiskUse[]
    readonly known: readonly ContainerDiskUse[] | undefined
    readonly isCounted: boolean
    readonly isStill: boolean
    readonly stores: KnownStores
  }> {
    const isNear = room !== undefined && isNearFloor(room)
    const counting = this.#uncounted.countingOf(room, disk)
    // Nobody's work is to stand still at each look, for as long as somebody keeps the disk short.
    const isStill = isNear && isLasting(room) && performance.now() - this.#stillAt >= this.#stillPauseMs
    let files = isNear ? await this.#count(counting, isStill, signal) : undefined
    if (isStill) {
      this.#stillAt = performance.now()
      this.#stillPauseMs = Math.min(stillPauseMs.longest, this.#stillPauseMs * 2 || stillPauseMs.first)
    }
    // Where inodes are short, it is not bytes that are missing.
    const isAsked = files === undefined && !(isNear && room.bytesPerInode !== undefined)
    const known = isAsked ? await this.#measuredByEngine(signal) : undefined
    const isUnknown = known?.some(({ isLate }) => isLate) === true
    if (!isNear && (isUnknown || this.#uncounted.isMissing(disk, known ?? [])))
      files = await this.#count(counting, false, signal)
    const uses = (files === undefined ? (known ?? []).map(byEngine) : withFiles(known ?? [], files)).map(
      use => atLeast(use, this.#latest.get(use.id))
    )
    this.#latest = new Map(uses.map(use => [use.id, use]))
    await bounded(async () => await this.#owners.renew(uses.map(({ owner }) => owner.projectId)), {
      ms: ownersWithinMs,
      signal,
      what: 'the owners of projects'
    }).catch(() => signal.throwIfAborted())
    const isFirst = this.#freeThen === undefined
    const found = uses.map(use => ({
      ...use,
      ownerId: this.#owners.of(use.owner.projectId),
      grownBytes: isFirst ? 0 : growthOf(use, this.#baseline.get(use.id))
    }))
    const stores = room === undefined ? noStores : await this.#images.read(found, room, signal)
    return { found, known, isCounted: files !== undefined, isStill: isStill && files !== undefined, stores }
  }

  /** When caches have gone: after a time, or below half of the floor, whether they have or not. */
  async #roomAfter(
    whenRoomy: Promise<void> | undefined,
    before: DiskRoom,
    signal: AbortSignal
  ): Promise<DiskRoom> {
    const endsAt = performance.now() + roomWithinMs
    let isOver = whenRoomy === undefined
    void whenRoomy?.then(() => {
      isOver = true
    })
    for (let room = before; ; ) {
      const isLast = isOver || performance.now() >= endsAt
      room = await this.#roomNow(room)
      if (isLast || room.freeBytes < room.floorBytes / 2) return room
      await pause(this.#parts.clock, roomLookMs, signal)
      signal.throwIfAborted()
    }
  }

  async #roomNow(otherwise: DiskRoom): Promise<DiskRoom> {
    const disk = await this.#parts.engineDisk.read().catch(() => undefined)
    return disk === undefined ? otherwise : this.#roomOf(disk)
  }

  async #measuredByEngine(signal: AbortSignal): Promise<readonly ContainerDiskUse[]> {
    return await bounded(async () => await this.#parts.runtime.diskUse({}, engineLimits), {
      ms: measureWithinMs,
      signal,
      what: 'what containers have written'
    })
  }

  async #count(
    counting: Counting,
    still: boolean,
    signal: AbortSignal
  ): Promise<readonly ContainerFileUse[] | undefined> {
    const { runtime, log } = this.#parts
    const options = { ...countLimits, ...counting, since: this.#roomyAt, still }
    try {
      const found = await bounded(async () => await runtime.fileUse({}, options), {
        ms: measureWithinMs,
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

  get #tellingLoss(): number {
    const { bytes } = this.#parts.limits
    return bytes === 0 ? tellingLoss.bytes : Math.min(tellingLoss.bytes, bytes * tellingLoss.share)
  }

  async #execute(verdict: DiskVerdict, room: DiskRoom | undefined): Promise<void> {
    if (verdict.kind === 'restart') {
      if (room !== undefined) await this.#restart(verdict.use, room)
      return
    }
    if (verdict.kind === 'release') {
      if (room !== undefined) await this.#release(verdict, room)
      return
    }
    const { runtime, log, limits } = this.#parts
    const { id, owner, bytes, inodes } = verdict.use
    if (verdict.kind === 'stop') await runtime.stop(id, stopGraceSeconds)
    else await runtime.remove(id)
    const reason = reasonOf(verdict, limits, room)
    log.warn(
      { ...owner, containerId: id, bytes, inodes },
      `an application takes too much of the disk. ${reason}`
    )
    await this.#note(owner.deploymentId, reason).catch((error: unknown) =>
      log.info(
        { err: error, ...owner },
        'why an application was stopped could not be noted in its deployment'
      )
    )
  }

  async #release(verdict: Extract<DiskVerdict, { kind: 'release' }>, room: DiskRoom): Promise<void> {
    const { log } = this.#parts
    const { applicationId, reference, deploymentIds, bytes } = verdict.image
    await this.#images.release(applicationId, reference)
    const reason = releaseReason(verdict, room)
    log.warn({ applicationId, image: reference, bytes }, `the disk is nearly short. ${reason}`)
    for (const deploymentId of deploymentIds)
      await this.#write(deploymentId, { level: 'warning', msg: reason }).catch((error: unknown) =>
        log.info({ err: error, deploymentId }, 'why an image went could not be noted in its deployment')
      )
  }

  /**
   * Restarts a container and sees how much comes back to the disk meanwhile. It may be chance, or the doing of another one that
   * has waited for it, so it decides only who is restarted first the next time.
   */
  async #restart({ id, owner }: DiskUse, room: DiskRoom): Promise<void> {
    const { runtime, log } = this.#parts
    this.#restarts.noteAsked(id)
    const before = await this.#free(room.freeBytes)
    const most = await this.#mostFreeDuring(before, async () => await runtime.restart(id, stopGraceSeconds))
    const isMuch = isTelling(most - before, { ...room, freeBytes: before })
    this.#restarts.noteBack(id, isMuch, performance.now())
    if (!isMuch) return
    const reason = backReason(most - before)
    log.warn(
      { ...owner, containerId: id },
      `what took a short disk came back when an application was restarted. ${reason}`
    )
    if (owner.deploymentId !== undefined)
      await this.#write(owner.deploymentId, { level: 'warning', msg: reason })
  }

  async #free(otherwise: number): Promise<number> {
    return (await this.#parts.engineDisk.read().catch(() => undefined))?.freeBytes ?? otherwise
  }

  /** What it writes first when it runs again is not to hide what came back before. */
  async #mostFreeDuring(before: number, act: () => Promise<void>): Promise<number> {
    const ended = new AbortController()
    let most = before
    const watch = async (): Promise<void> => {
      while (!ended.signal.aborted) {
        most = Math.max(most, await this.#free(before))
        await pause(this.#parts.clock, watchPauseMs, ended.signal)
      }
    }
    const watching = watch()
    try {
      await act()
    } finally {
      ended.abort()
      await watching
    }
    return Math.max(most, await this.#free(before))
  }

  /** Where its author looks. */
  async #note(deploymentId: string | undefined, reason: string): Promise<void> {
    if (deploymentId === undefined) return
    const { store, clock } = this.#parts
    await store.change(deploymentId, {
      health_status: 'failing',
      health_message: reason,
      health_checked_at: clock.now()
    })
    await this.#write(deploymentId, { level: 'error', msg: reason })
  }

  async #write(deploymentId: string, line: BuildLogLine): Promise<void> {
    const buildLog = openBuildLog(deploymentId, { ...this.#parts, store: this.#parts.logs })
    buildLog.endChannel()
    buildLog.line(line)
    await buildLog.close()
  }
}

/** One that has passed its own limit stops for that. */
const costs = ({ kind }: DiskVerdict): boolean => kind !== 'stop'

const ownerOf = (verdict: DiskVerdict) =>
  verdict.kind === 'release' ? { applicationId: verdict.image.applicationId } : verdict.use.owner
