import type { PoolClient } from 'pg'
import { pause } from '../clock/waits.js'
import { type EndCause, processIdOf, takenText } from './guarded-connections.js'
import type { LockWatch } from './lock-watch.js'
import { cutByWire } from './wire-cancel.js'

interface MigrationLimits {
  readonly plugin: string
  /** Of the migration. */
  readonly name: string
  /** When all migrations of the plugin have to be done, by the process's clock. */
  readonly late: number
  /** How long that is from their beginning, for the error. */
  readonly limitMs: number
  /** How long statements of others may wait for locks of it. */
  readonly blockingMs: number
  readonly locks: LockWatch
}

/** When the first did not help. */
const endAgainMs = 2_000
/** Then it is left to itself. */
const mostSignals = 2

/**
 * Runs a migration of a third-party plugin, and cancels it when its time is up or when others wait for it. PostgreSQL's own limit is
 * one for each statement, and a migration may have many.
 */
export async function withinLimits(
  client: PoolClient,
  { plugin, name, late, limitMs, blockingMs, locks }: MigrationLimits,
  work: () => Promise<void>
): Promise<void> {
  const pid = processIdOf(client)
  const begun = performance.now()
  let reason: string | undefined
  const sent: Array<Promise<unknown>> = []
  const end = (why: string, times: number, began?: string | null): void => {
    reason ??= why
    // SQL code may go on after the first, and what waits for a program outside of PostgreSQL after the second.
    if (times > mostSignals) cutByWire(client)
    else if (pid !== undefined)
      sent.push(locks.signal(pid, times === 1 ? 'cancel' : 'terminate', began).catch(() => {}))
  }
  const ended = new AbortController()
  const watchTime = async (): Promise<void> => {
    await pause(Math.max(1, late - performance.now()), ended.signal)
    for (let times = 1; !ended.signal.aborted; times++) {
      end(tooLong(limitMs), times)
      await pause(endAgainMs, ended.signal)
    }
  }
  void watchTime()
  const stop = locks.guard(client, {
    plugin,
    limitMs: blockingMs,
    // Other processes wait until it is their turn to migrate.
    minds: wait => wait.lock !== 'advisory' && !locks.isOwn(wait, plugin),
    busySince: () => begun,
    end: (_, cause, times) => {
      if (cause.kind === 'waits') {
        end(blockingReason(cause.wait.table, blockingMs), times, cause.wait.began)
        return
      }
      reason ??= otherReason(cause)
      cutByWire(client)
    }
  })
  try {
    await work()
  } catch (error) {
    if (reason === undefined) throw error
    throw new Error(`migration ${name} of ${plugin} failed: ${reason}`, { cause: error })
  } finally {
    ended.abort()
    stop()
    // What comes next on this connection is not what was meant.
    await Promise.all(sent)
  }
}

const tooLong = (ms: number): string =>
  `it took longer than the ${ms / 1000} s that all migrations of a plugin have together: do what takes long in a job`

const blockingReason = (table: string | null, ms: number): string =>
  `it kept statements of others waiting for more than ${ms / 1000} s, as it keeps ${table ?? 'what they need'} locked until it ends: split it, so that what locks a table of others (a foreign key, say) has a migration of its own in which nothing takes long`

function otherReason(cause: Exclude<EndCause, { kind: 'waits' }>): string {
  switch (cause.kind) {
    case 'locks':
      return `it had ${cause.locks} locks, and PostgreSQL no room for more: split it`
    case 'taken':
      return takenText(cause.lock)
    case 'blind':
      return 'system catalogs were locked, and it had been at work for longest: leave out what locks them'
  }
}
