import type { BuildLimits, BuildQueue } from 'busbar/api/builds'
import type { Database, Tx } from 'busbar/sdk'

/** A deployment whose build waits for its admission. */
export interface QueuedDeployment {
  readonly id: string
  readonly project_id: string
  readonly application_id: string
  readonly queued_at: Date
  readonly waiting_for: string | null
  readonly waiting_cause: string | null
  readonly seen_at: Date | null
}

interface Promised { readonly id: string, readonly project_id: string, readonly admitted_memory: number | null }

const waits = "status = 'pending' and queued_at is not null and admitted_at is null"
const builds = "status in ('pending', 'building') and admitted_at is not null"

/** The queue of builds: it is the deployments themselves, so that it survives a restart and no entry outlives its deployment. */
export class BuildQueueStore {
  constructor (private readonly db: Database) {}

  /** Until the transaction ends nobody else, in this process or another, changes the queue. */
  async lock (tx: Tx): Promise<void> {
    await this.db.sql("select pg_advisory_xact_lock(hashtextextended('deployments.build-queue', 0))", [], tx)
  }

  /** False when it has ended, as a cancelled one has. */
  async enter (id: string, now: Date, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      "update $schema.deployment set queued_at = coalesce(queued_at, :now) where id = :id and status = 'pending' and cancel_requested_at is null returning id", { id, now }, tx)
    return rows.length === 1
  }

  async isAnybodyWaiting (): Promise<boolean> {
    return (await this.db.sql(`select from $schema.deployment where ${waits} limit 1`)).length === 1
  }

  async waiting (tx: Tx): Promise<readonly QueuedDeployment[]> {
    return await this.db.sql<QueuedDeployment>(
      `select id, project_id, application_id, queued_at, waiting_for, waiting_cause, seen_at from $schema.deployment where ${waits} order by queued_at, id`, [], tx)
  }

  async running (tx: Tx): Promise<BuildQueue['running']> {
    const rows = await this.db.sql<Promised>(`select id, project_id, admitted_memory from $schema.deployment where ${builds}`, [], tx)
    return rows.map(({ id, project_id: projectId, admitted_memory: memory }) => ({ id, projectId, memoryBytes: Number(memory ?? 0) }))
  }

  async lastAdmitted (projectIds: readonly string[], since: Date, tx: Tx): Promise<ReadonlyMap<string, Date>> {
    const rows = await this.db.sql<{ project_id: string, admitted_at: Date }>(
      `select project_id, max(admitted_at) as admitted_at from $schema.deployment
       where project_id = any(cast(:projectIds as uuid[])) and admitted_at > :since group by project_id`, { projectIds: [...projectIds], since }, tx)
    return new Map(rows.map(({ project_id: projectId, admitted_at: at }) => [projectId, at]))
  }

  async admit (id: string, { memoryBytes, cpus }: BuildLimits, now: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      "update $schema.deployment set admitted_at = :now, admitted_memory = :memoryBytes, admitted_cpus = :cpus, waiting_for = null where id = :id and status = 'pending'", { id, memoryBytes, cpus, now }, tx)
  }

  async note (id: string, waitingFor: string, tx: Tx): Promise<void> {
    await this.db.sql("update $schema.deployment set waiting_for = ? where id = ? and status = 'pending'", [waitingFor, id], tx)
  }

  /** The cause that the log has told. */
  async noteTold (id: string, cause: string): Promise<void> {
    await this.db.sql('update $schema.deployment set waiting_cause = ? where id = ?', [cause, id])
  }

  /** The limits of one that was admitted. */
  async granted (id: string, tx: Tx): Promise<BuildLimits | undefined> {
    const [row] = await this.db.sql<{ admitted_memory: number, admitted_cpus: number }>(
      'select admitted_memory, admitted_cpus from $schema.deployment where id = ? and admitted_at is not null', [id], tx)
    return row === undefined ? undefined : { memoryBytes: Number(row.admitted_memory), cpus: row.admitted_cpus }
  }
}
