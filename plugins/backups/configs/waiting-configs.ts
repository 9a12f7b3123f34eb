import type { Clock, Database, Jobs, Secrets, Tx } from 'busbar/sdk'
import type { ConfigStore } from './config-store.js'

interface WaitingParts {
  readonly db: Database
  readonly jobs: Jobs
  readonly clock: Clock
  readonly secrets: Pick<Secrets, 'clean'>
  readonly configs: Pick<ConfigStore, 'wait' | 'waiting'>
}

interface Waiting {
  readonly id: string
  readonly source_id: string
}

/** What ends is told; what is not is noticed so late at most: an upgrade, a process that was killed. */
const againMs = 60_000

/** Schedules whose time has come while other work was under way. Their rows say so, and no worker waits. */
export class WaitingConfigs {
  constructor(private readonly parts: WaitingParts) {}

  async wait(config: Waiting, { since, what }: { readonly since: Date; readonly what: string }, tx: Tx) {
    const { configs, clock, secrets } = this.parts
    await configs.wait(config.id, { since, what: secrets.clean(what) }, tx)
    await this.#enqueue(config, tx, new Date(clock.now().getTime() + againMs))
  }

  /** Work on that source ends with `tx`: who waits for it is looked at then, who waits longest first. */
  async wake(sourceId: string, tx: Tx): Promise<void> {
    for (const config of await this.parts.configs.waiting(sourceId, tx)) await this.#enqueue(config, tx)
  }

  /** Those whose job is gone: somebody has emptied the queue. */
  async takeUp(): Promise<void> {
    const { db, configs } = this.parts
    for (const config of await configs.waiting(null))
      await db.transaction(async tx => {
        await this.#enqueue(config, tx)
      })
  }

  /** Those of one source one after another; of each, one waits at most. */
  async #enqueue({ id, source_id: sourceId }: Waiting, tx: Tx, runAt?: Date): Promise<void> {
    const options = { key: `waits/${id}`, queue: `waits/${sourceId}`, ...(runAt !== undefined && { runAt }) }
    await this.parts.jobs.enqueue('due-again', { configId: id }, options, tx)
  }
}
