import type { Log } from 'busbar/sdk'
import {
  type Client,
  lockCountsText,
  lockHolderText,
  lockWaitsText,
  type SeenWait,
  signalText
} from './lock-waits.js'
import type { Session } from './session.js'
import type { LockCount } from './who-to-end.js'

/**
 * What is asked of the server about locks, on the session's connection. While they have been answered once on it, these are also
 * when somebody has the catalogs locked.
 */
export class LockQuestions {
  readonly #stopWarming: () => void

  constructor(
    private readonly session: Session,
    private readonly log: Log
  ) {
    this.#stopWarming = session.onConnect(() => void this.#warm())
  }

  /** Those behind which is one of `guarded` first; `withConnecting`: of connections that are only being made too. */
  async waits(guarded: readonly number[], withConnecting: boolean): Promise<readonly SeenWait[]> {
    return await this.session.query<SeenWait>(lockWaitsText, [guarded, withConnecting], 'busbar.waits')
  }

  async counts(): Promise<readonly LockCount[]> {
    return await this.session.query<LockCount>(lockCountsText, [], 'busbar.lock-counts')
  }

  /** Who has the advisory lock of this name. */
  async holderOf(name: string): Promise<Client | undefined> {
    const rows = await this.session.query<Client>(lockHolderText, [name], 'busbar.lock-holder')
    return rows[0]
  }

  /**
   * Sends a signal to the server's process: `pg_cancel_backend` or `pg_terminate_backend`. False when it is gone; or, with
   * `began`, when it is not that connection any more or keeps nobody waiting by now. Throws while the session has no connection:
   * later the process may be another one's.
   */
  async signal(pid: number, what: 'cancel' | 'terminate', began?: string | null): Promise<boolean> {
    const rows = await this.session.query<{ isSent: boolean }>(
      signalText(what),
      [pid, began !== undefined, began ?? null],
      `busbar.${what}`
    )
    return rows[0]?.isSent === true
  }

  close(): void {
    this.#stopWarming()
  }

  async #warm(): Promise<void> {
    try {
      await this.waits([], true)
      await this.signal(0, 'cancel')
      await this.signal(0, 'terminate')
      await this.counts()
      await this.holderOf('')
    } catch (error) {
      this.log.debug({ err: error }, 'who waits for locks could not be prepared to be asked')
    }
  }
}
