import type { BackupKeeper } from 'busbar/api/backups'
import { type Clock, type Log, type OptionalHandle, pause } from 'busbar/sdk'
import type { DatabaseStore } from '../records/database-store.js'
import type { ControlHold } from '../servers/control-hold.js'
import type { DatabaseBackupSource } from './backup-source.js'

interface LeftWorkParts {
  readonly store: Pick<DatabaseStore, 'left'>
  readonly source: Pick<DatabaseBackupSource, 'settle'>
  readonly control: Pick<ControlHold, 'releaseLeft'>
  readonly backups: OptionalHandle<BackupKeeper>
  readonly clock: Clock
  readonly log: Log
}

const lookEveryMs = 60_000

/**
 * Backups and restores that are over and have left their database busy: the engine was away when it was to be put back, or its server
 * took long to recover. What is under way is left alone: it is what two looks have found so. And starts, stops and restarts whose process
 * was killed.
 */
export class LeftWork {
  #suspects = new Set<string>()

  constructor(private readonly parts: LeftWorkParts) {}

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, control } = this.parts
    const warn = (error: unknown): void => {
      log.warn({ err: error }, 'databases that were left busy could not be looked for')
    }
    while (!signal.aborted) {
      await control.releaseLeft().catch(warn)
      await this.look(signal).catch(warn)
      await pause(clock, lookEveryMs, signal)
    }
  }

  async look(signal: AbortSignal): Promise<void> {
    const { store, source, backups, log } = this.parts
    const found = new Set<string>()
    for (const { id, task, restore_id: restore } of await store.left()) {
      signal.throwIfAborted()
      // Those of a plugin that is off are not under way.
      if ((await backups.get()?.activity('database', id)) != null) continue
      const suspect = `${task} ${id} ${restore}`
      if (this.#suspects.has(suspect))
        await source.settle(id, task, { signal }).catch((error: unknown) => {
          signal.throwIfAborted()
          log.warn(
            { err: error, databaseId: id },
            'what a backup or a restore has left could not be put back'
          )
        })
      found.add(suspect)
    }
    this.#suspects = found
  }
}
