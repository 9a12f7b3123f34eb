import { type Clock, type Database, type Log, runRepeatedly } from 'busbar/sdk'
import type { DeploymentRecords } from '../records/deployment-records.js'
import type { OwnerTurnStore } from './owner-turn-store.js'

/** Half of the workers: a deploy may wait most of an hour for a container that never gets healthy. */
export const maxPerOwner = 6
/** What one waits for whose owner has as many. */
export const reasonOfOwner = `waiting for its turn: ${maxPerOwner} deployments in projects of the same owner are under way`
/** Where a deployment ends in this process, it is looked at once. */
const lookEveryMs = 5000

interface OwnerTurnParts {
  readonly db: Database
  readonly turns: OwnerTurnStore
  readonly records: DeploymentRecords
  readonly clock: Clock
  readonly log: Log
}

/**
 * Lets so many deployments of the projects of one owner be under way at a time, that those of others find a worker.
 * One that waits is a `pending` row and holds none.
 */
export class OwnerTurns {
  readonly #parts: OwnerTurnParts
  constructor(parts: OwnerTurnParts) {
    this.#parts = parts
  }

  /** False when it has to wait; it gets a job when its turn has come. */
  async take(deploymentId: string): Promise<boolean> {
    const { db, turns, clock } = this.#parts
    return await db.transaction(async tx => {
      await turns.lock(tx)
      const standing = await turns.standing(deploymentId, tx)
      if (standing?.has_turn === true) return true
      if ((standing?.before ?? 0) >= maxPerOwner) {
        await turns.note(deploymentId, reasonOfOwner, tx)
        return false
      }
      await turns.give(deploymentId, clock.now(), tx)
      return true
    })
  }

  /** Gives a job to those whose turn has come. */
  async look(): Promise<void> {
    const { turns, records } = this.#parts
    for (const { id, application_id: applicationId } of await turns.due(maxPerOwner))
      await records.enqueue(id, applicationId)
  }

  /** Looks again and again, until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    await runRepeatedly(async () => await this.look(), {
      everyMs: lookEveryMs,
      clock,
      signal,
      onError: error => this.#couldNotLook(error)
    })
  }

  /** A deployment has ended. */
  hasRoom(): void {
    this.look().catch((error: unknown) => this.#couldNotLook(error))
  }

  #couldNotLook(error: unknown): void {
    this.#parts.log.debug(
      { err: error },
      'the deployments that wait for their turn could not be looked at; trying again'
    )
  }
}
