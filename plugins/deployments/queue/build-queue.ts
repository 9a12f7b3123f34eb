import type { AdmissionVerdict, BuildAdmission, BuildLimits } from 'busbar/api/builds'
import { type Clock, type Database, type Log, runRepeatedly, type Tx } from 'busbar/sdk'
import type { BuildLog } from '../records/build-log.js'
import type { DeploymentRecords } from '../records/deployment-records.js'
import type { DeploymentRow } from '../records/deployment-store.js'
import { Cancelled } from '../rollout/deploy-failure.js'
import type { BuildQueueStore, QueuedDeployment } from './build-queue-store.js'
import { maxPerOwner, reasonOfOwner } from './owner-turns.js'

/** There is no notification of freed memory and lower pressure. */
const lookEveryMs = 2000
/** A wait whose cause alternates does not fill the log. */
const tellEveryMs = 15_000
/** Whose last turn was longer ago than this has had none. */
const turnsMs = 24 * 60 * 60_000

/** The build has to wait: its job ends, and gets a successor when the turn has come. */
export class BuildDeferred extends Error {}

const waitForOwner: AdmissionVerdict = {
  kind: 'wait',
  cause: 'turn',
  reason: reasonOfOwner
}

interface BuildQueueParts {
  readonly db: Database
  readonly queue: BuildQueueStore
  readonly records: DeploymentRecords
  readonly admission: BuildAdmission
  readonly clock: Clock
  readonly log: Log
}

/**
 * Lets builds begin when there is room for them. A waiting deployment is a `pending` row and nothing else: it
 * holds no worker, survives a restart, and is cancelled at once.
 */
export class BuildQueue {
  readonly #parts: BuildQueueParts
  constructor(parts: BuildQueueParts) {
    this.#parts = parts
  }

  /** The limits of the build that begins now. Throws `BuildDeferred` when it has to wait, a problem when waiting would not help. */
  async enter(
    { id, queued_at: queuedAt, waiting_cause: told }: DeploymentRow,
    buildLog: BuildLog
  ): Promise<BuildLimits> {
    const { queue, clock } = this.#parts
    const verdict = await this.#decide(id)
    if (verdict.kind === 'refuse') throw verdict.problem
    if (verdict.kind === 'wait') {
      if (verdict.cause !== told) {
        buildLog.line({ level: 'info', msg: `The build is ${verdict.reason}.` })
        await queue.noteReported(id, verdict.cause)
      }
      throw new BuildDeferred(verdict.reason)
    }
    if (told !== null && queuedAt !== null)
      buildLog.line({
        level: 'info',
        msg: `The build begins after a wait of ${seconds(clock.now().getTime() - queuedAt.getTime())}.`
      })
    if (verdict.note !== null) buildLog.line({ level: 'warning', msg: `${verdict.note}.` })
    return verdict.limits
  }

  async #decide(id: string): Promise<AdmissionVerdict> {
    const { db, queue, clock } = this.#parts
    return await db.transaction(async tx => {
      await queue.lock(tx)
      const limits = await queue.enter(id, clock.now(), tx)
      if (limits === undefined) throw new Cancelled()
      // Admitted by a look of before, or by a process that has died since.
      if (limits !== null) return { kind: 'admit', limits, note: null }
      const verdict = (await this.#decideAll(tx, id)).get(id)
      if (verdict === undefined) throw new Error(`the admission has no verdict on ${id}`)
      return verdict
    })
  }

  /** Decides about everything that waits. What may begin gets its job; so does what has to log a new reason. */
  async look(): Promise<void> {
    const { db, queue } = this.#parts
    if (!(await queue.hasWaiting())) return
    await db.transaction(async tx => {
      await queue.lock(tx)
      await this.#decideAll(tx)
    })
  }

  async #decideAll(tx: Tx, enteringId?: string): Promise<ReadonlyMap<string, AdmissionVerdict>> {
    const { queue, admission, records, clock } = this.#parts
    const all = await queue.waiting(tx, maxPerOwner)
    const waiting = all.filter(({ has_room: hasRoom }) => hasRoom)
    if (all.length === 0) return new Map()
    const now = clock.now()
    const decided = await admission.decide({
      waiting: waiting.map(({ id, project_id: projectId, owner_id: ownerId, queued_at: since }) => ({
        id,
        projectId,
        ownerId,
        since
      })),
      running: await queue.running(tx),
      lastAdmitted: await queue.lastAdmitted(
        {
          projectIds: waiting.map(({ project_id: projectId }) => projectId),
          ownerIds: waiting.map(({ owner_id: ownerId }) => ownerId)
        },
        new Date(now.getTime() - turnsMs),
        tx
      )
    })
    const held = all.filter(({ has_room: hasRoom }) => !hasRoom)
    const verdicts = new Map([...decided, ...held.map(({ id }) => [id, waitForOwner] as const)])
    for (const one of all) {
      const verdict = verdicts.get(one.id)
      if (verdict === undefined) continue
      if (verdict.kind === 'admit') await queue.admit(one.id, verdict.limits, now, tx)
      if (verdict.kind === 'wait' && verdict.reason !== one.waiting_for)
        await queue.note(one.id, verdict.reason, tx)
      if (one.id !== enteringId && hasNews(one, verdict, now))
        await records.enqueue(one.id, one.application_id, tx)
    }
    return verdicts
  }

  /** Looks again and again, until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts
    await runRepeatedly(async () => await this.look(), {
      everyMs: lookEveryMs,
      clock,
      signal,
      onError: error => log.debug({ err: error }, 'the queue of builds could not be looked at; trying again')
    })
  }

  /** A build has ended or was cancelled, and another one may begin. */
  hasRoom(): void {
    void this.look().catch((error: unknown) => {
      this.#parts.log.debug(
        { err: error },
        'the queue of builds could not be looked at; the next look is soon'
      )
    })
  }
}

/** Only its own job writes the log of a deployment, so it gets a job to log that it waits for something else. */
function hasNews(
  { waiting_cause: told, seen_at: seenAt }: QueuedDeployment,
  verdict: AdmissionVerdict,
  now: Date
): boolean {
  if (verdict.kind !== 'wait') return true
  return told !== null && verdict.cause !== told && now.getTime() - (seenAt?.getTime() ?? 0) > tellEveryMs
}

const seconds = (ms: number): string =>
  ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`
