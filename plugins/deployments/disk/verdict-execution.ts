import type { BuildLogLine, EngineDiskReader } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type Bus, type Clock, type Log, pause, type Secrets } from 'busbar/sdk'
import { openBuildLog } from '../records/build-log.js'
import type { DeploymentLogStore } from '../records/deployment-log-store.js'
import type { DeploymentStore } from '../records/deployment-store.js'
import {
  type DiskRoom,
  type DiskUse,
  type DiskUseLimits,
  type DiskVerdict,
  isTelling
} from './disk-use-decision.js'
import { backReason, reasonOf, releaseReason } from './disk-use-words.js'
import type { ImageLook } from './image-look.js'
import type { Restarts } from './restarts.js'

export interface ExecutionParts {
  readonly store: Pick<DeploymentStore, 'change'>
  readonly logs: DeploymentLogStore
  readonly runtime: Pick<ContainerRuntime, 'stop' | 'restart' | 'remove'>
  readonly engineDisk: Pick<EngineDiskReader, 'read'>
  readonly bus: Bus
  readonly secrets: Pick<Secrets, 'clean'>
  readonly clock: Clock
  readonly log: Log
  readonly limits: DiskUseLimits
}

interface Parts extends ExecutionParts {
  readonly images: Pick<ImageLook, 'release'>
  readonly restarts: Pick<Restarts, 'noteAsked' | 'noteBack'>
}

/** Others would lose theirs for what is about to be gone. */
const filesWithinMs = 60_000
/** It goes on writing meanwhile. */
const stopGraceSeconds = 5
const watchPauseMs = 50

/** Does what was decided about containers and images, and says why where their authors look. */
export class VerdictExecution {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async execute(verdict: DiskVerdict, room: DiskRoom | undefined): Promise<void> {
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
    const reason = reasonOf(verdict, limits, room)
    const tell = async (): Promise<void> => {
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
    if (verdict.kind === 'stop') await runtime.stop(id, stopGraceSeconds).then(tell)
    else await runtime.remove(id, { filesMs: filesWithinMs, onGone: tell })
  }

  async #release(verdict: Extract<DiskVerdict, { kind: 'release' }>, room: DiskRoom): Promise<void> {
    const { log } = this.#parts
    const { applicationId, reference, deploymentIds, bytes } = verdict.image
    await this.#parts.images.release(applicationId, reference)
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
    this.#parts.restarts.noteAsked(id)
    const before = await this.#free(room.freeBytes)
    const most = await this.#mostFreeDuring(before, async () => await runtime.restart(id, stopGraceSeconds))
    const isMuch = isTelling(most - before, { ...room, freeBytes: before })
    this.#parts.restarts.noteBack(id, isMuch, performance.now())
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
