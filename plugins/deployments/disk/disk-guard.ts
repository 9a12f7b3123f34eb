import type { EngineDisk } from 'busbar/api/builds'
import type { ContainerDiskUse, ContainerRuntime } from 'busbar/api/containers'
import { type Bus, bounded, type Clock, type Log, pause, type Secrets } from 'busbar/sdk'
import { openBuildLog } from '../records/build-log.js'
import type { DeploymentLogStore } from '../records/deployment-log-store.js'
import type { DeploymentStore } from '../records/deployment-store.js'
import { type DiskRoom, type DiskVerdict, decideDiskUse, isNearFloor } from './disk-use-decision.js'

interface DiskGuardParts {
  readonly store: Pick<DeploymentStore, 'change'>
  readonly logs: DeploymentLogStore
  readonly runtime: Pick<ContainerRuntime, 'diskUse' | 'stop' | 'remove'>
  readonly engineDisk: { read(): Promise<EngineDisk | undefined> }
  readonly bus: Bus
  readonly secrets: Pick<Secrets, 'clean'>
  readonly clock: Clock
  readonly log: Log
  /** What one container may write; 0 = no limit. */
  readonly limitBytes: number
}

/** A container writes no faster than this for long: half of the time in which it would pass the floor may go by unseen. */
const bytesPerSecond = 2 * 2 ** 30
const shortestLookMs = 250
const longestLookMs = 5000
/** So much is missing, and it is time to see what has it; or this share of what a container may write. */
const tellingLoss = { bytes: 512 * 2 ** 20, share: 1 / 4 }
const measureEveryMs = 60_000
/** Measuring makes the engine look at every file that containers have written: it may take this share of the time. */
const measuringShare = { near: 0.2, else: 0.02 }
const measureWithinMs = 5 * 60_000
/** It goes on writing meanwhile. */
const stopGraceSeconds = 5

/**
 * Keeps what applications write to their own containers from taking the disk of all: most engines have no limit for
 * that. In one process of the installation.
 */
export class DiskGuard {
  readonly #parts: DiskGuardParts
  /** By container, when the disk was last seen with room, or for the first time. */
  #baseline: ReadonlyMap<string, number> = new Map()
  #freeThen: number | undefined
  #measuredFree: number | undefined
  /** How long the latest measuring took, and when it ended. */
  #measured = { ms: 0, endedAt: Number.NEGATIVE_INFINITY }
  #shortSince: number | undefined

  constructor(parts: DiskGuardParts) {
    this.#parts = parts
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
    if (this.#isDue(room)) await this.#enforce(room, signal)
    if (disk === undefined) return longestLookMs
    const spare = disk.freeBytes - disk.floorBytes
    return Math.min(longestLookMs, Math.max(shortestLookMs, ((spare / bytesPerSecond) * 1000) / 2))
  }

  #roomOf({ freeBytes, floorBytes }: EngineDisk): DiskRoom {
    const now = performance.now()
    this.#shortSince = freeBytes < floorBytes ? (this.#shortSince ?? now) : undefined
    return {
      freeBytes,
      floorBytes,
      lostBytes: Math.max(0, (this.#freeThen ?? freeBytes) - freeBytes),
      shortMs: this.#shortSince === undefined ? 0 : now - this.#shortSince
    }
  }

  #isDue(room: DiskRoom | undefined): boolean {
    const { ms, endedAt } = this.#measured
    const passedMs = performance.now() - endedAt
    const isNear = room !== undefined && isNearFloor(room)
    if (passedMs < ms / (isNear ? measuringShare.near : measuringShare.else)) return false
    if (isNear || passedMs >= measureEveryMs) return true
    return room !== undefined && (this.#measuredFree ?? room.freeBytes) - room.freeBytes >= this.#tellingLoss
  }

  async #enforce(room: DiskRoom | undefined, signal: AbortSignal): Promise<void> {
    const { runtime, log, limitBytes } = this.#parts
    const begunAt = performance.now()
    const found = await bounded(async () => await runtime.diskUse({}), {
      ms: measureWithinMs,
      signal,
      what: 'what containers have written'
    }).finally(() => {
      const endedAt = performance.now()
      this.#measured = { ms: endedAt - begunAt, endedAt }
    })
    const uses = found.map(use => ({ ...use, grownBytes: this.#growthOf(use) }))
    const verdicts = decideDiskUse(uses, limitBytes, room)
    for (const verdict of verdicts)
      await this.#execute(verdict, room).catch((error: unknown) =>
        log.warn(
          { err: error, ...verdict.use.owner },
          'an application that takes too much of the disk could not be stopped; trying again'
        )
      )
    this.#measuredFree = room?.freeBytes
    // What has gone gives room: soon seen.
    if (verdicts.length > 0) this.#measured = { ms: 0, endedAt: performance.now() }
    if (this.#freeThen !== undefined && room !== undefined && isNearFloor(room)) return
    this.#baseline = new Map(found.map(({ id, bytes }) => [id, bytes]))
    this.#freeThen = room?.freeBytes
  }

  get #tellingLoss(): number {
    const { limitBytes } = this.#parts
    return limitBytes === 0 ? tellingLoss.bytes : Math.min(tellingLoss.bytes, limitBytes * tellingLoss.share)
  }

  /** One that was not there before has written all of it since. */
  #growthOf({ id, bytes }: ContainerDiskUse): number {
    return this.#freeThen === undefined ? 0 : Math.max(0, bytes - (this.#baseline.get(id) ?? 0))
  }

  async #execute({ kind, use }: DiskVerdict, room: DiskRoom | undefined): Promise<void> {
    const { runtime, log, limitBytes } = this.#parts
    const { id, owner, bytes } = use
    if (kind === 'stop') await runtime.stop(id, stopGraceSeconds)
    else await runtime.remove(id)
    const reason =
      kind === 'stop'
        ? `It was stopped: it has written ${mebibytes(bytes)} to its own file system and to volumes that its image declares, and ${mebibytes(limitBytes)} are allowed. Deployed again, it begins with nothing written; what it needs for longer belongs into a volume of its own.`
        : `It was stopped and what it had written was removed, ${mebibytes(bytes)}: ${mebibytes(room?.freeBytes ?? 0)} were left on the disk of all applications, and its project had taken most. Deployed again, it begins with nothing written.`
    log.warn({ ...owner, containerId: id, bytes }, `an application takes too much of the disk. ${reason}`)
    await this.#note(owner.deploymentId, reason).catch((error: unknown) =>
      log.info(
        { err: error, ...owner },
        'why an application was stopped could not be noted in its deployment'
      )
    )
  }

  /** Where its author looks. */
  async #note(deploymentId: string | undefined, reason: string): Promise<void> {
    if (deploymentId === undefined) return
    const { store, logs, clock } = this.#parts
    await store.change(deploymentId, {
      health_status: 'failing',
      health_message: reason,
      health_checked_at: clock.now()
    })
    const buildLog = openBuildLog(deploymentId, { ...this.#parts, store: logs })
    buildLog.endChannel()
    buildLog.line({ level: 'error', msg: reason })
    await buildLog.close()
  }
}

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`
