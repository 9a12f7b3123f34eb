import type { BackupKeeper } from 'busbar/api/backups'
import { type Clock, isProblem, type Log, type OptionalHandle, pause } from 'busbar/sdk'
import type { VolumeBackups } from './volume-backups.js'
import type { WorkRow, WorkStore } from './work-store.js'

interface LeftWorkParts {
  readonly store: Pick<WorkStore, 'left' | 'end'>
  readonly backups: Pick<VolumeBackups, 'settleLeft'>
  readonly keeper: OptionalHandle<BackupKeeper>
  readonly clock: Clock
  readonly log: Log
}

const lookEveryMs = 60_000

/**
 * Backups and restores that are over and have left an application stopped, or its volume half exchanged: the engine was away when that was
 * to be put back, or this plugin was off. What is under way is left alone: it is what two looks have found so.
 */
export class LeftWork {
  #suspects = new Set<string>()

  constructor(private readonly parts: LeftWorkParts) {}

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    while (!signal.aborted) {
      await this.look(signal).catch((error: unknown) => {
        log.warn({ err: error }, 'applications that were left stopped could not be looked for')
      })
      await pause(clock, lookEveryMs, signal)
    }
  }

  async look(signal: AbortSignal): Promise<void> {
    const { store, keeper } = this.parts
    const found = new Set<string>()
    for (const row of await store.left()) {
      signal.throwIfAborted()
      // Those of a plugin that is off are not under way.
      if ((await keeper.get()?.activity('volume', row.volume_id)) != null) continue
      if (this.#suspects.has(row.id)) await this.#putBack(row, signal)
      found.add(row.id)
    }
    this.#suspects = found
  }

  async #putBack(row: WorkRow, signal: AbortSignal): Promise<void> {
    const { store, backups, log } = this.parts
    const { volume_id: volumeId, application_id: applicationId } = row
    try {
      await backups.settleLeft(row, signal)
    } catch (error) {
      log.warn(
        { err: error, volumeId, applicationId },
        'what a backup or a restore has left could not be put back'
      )
      // An engine that answers does not take its container any more: it is shown as stopped, and may be deployed.
      if (isProblem(error) && error.code === 'E_ENGINE_REFUSED' && !row.is_exchanging) await store.end(row)
    }
  }
}
