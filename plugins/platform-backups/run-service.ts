import { randomUUID } from 'node:crypto'
import { type Clock, type Database, isProblem, type Jobs, type Log, type Page, type Rows } from 'busbar/sdk'
import type { BackupRunner } from './backup-runner.js'
import { problems } from './problems.js'
import type { RecoveryKeyService } from './recovery-key-service.js'
import type { RemoteService } from './remote-service.js'
import type { Retention } from './retention.js'
import type { RunStore } from './run-store.js'
import type { RunAnswer, StatusAnswer } from './schemas.js'

interface RunParts {
  readonly db: Database
  readonly jobs: Jobs
  readonly clock: Clock
  readonly log: Log
  readonly store: RunStore
  readonly remotes: RemoteService
  readonly keys: RecoveryKeyService
  readonly runner: BackupRunner
  readonly retention: Retention
}

/** What is asked for, and what is told. The work is `BackupRunner`'s. */
export class RunService {
  constructor(private readonly parts: RunParts) {}

  async list(page: Page): Promise<Rows<RunAnswer>> {
    return await this.parts.store.list(page)
  }

  async status(): Promise<StatusAnswer> {
    const { store, remotes, keys, retention, log } = this.parts
    const [last, { isEnabled, remote }, recipients] = await Promise.all([
      store.last(),
      remotes.view(),
      keys.recipients().catch((error: unknown) => {
        log.warn({ err: error }, 'what platform backups are encrypted to could not be read')
        return []
      })
    ])
    return {
      ...last,
      remote_enabled: isEnabled,
      remote,
      retention: { ...retention },
      encryption_enabled: recipients.length > 0,
      encryption_recipient: recipients[0] ?? null
    }
  }

  /** Rejects with `busy` while one is not over. */
  async begin(): Promise<void> {
    if (await this.#insert()) return
    // It may be what a process left that was killed.
    await this.parts.runner.endStale()
    if (await this.#insert()) return
    await this.#ensureTaken()
    throw problems.busy()
  }

  async beginScheduled(): Promise<void> {
    await this.begin().catch((error: unknown) => {
      if (!isProblem(error) || error.code !== problems.busy.code) throw error
      this.parts.log.info('a platform backup is due and one is under way already')
    })
  }

  async #insert(): Promise<boolean> {
    const { db, store, jobs, clock } = this.parts
    return await db.transaction(async tx => {
      const id = randomUUID()
      if (!(await store.insert({ id, started_at: clock.now() }, tx))) return false
      await jobs.enqueue('run', { runId: id }, { key: 'run' }, tx)
      return true
    })
  }

  /** A run waits for its job, which somebody may have taken out of the queue. */
  async #ensureTaken(): Promise<void> {
    const open = await this.parts.store.open()
    if (open !== undefined && open.begun_at === null)
      await this.parts.jobs.enqueue('run', { runId: open.id }, { key: 'run' })
  }
}
