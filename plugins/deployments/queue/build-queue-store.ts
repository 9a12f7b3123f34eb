import type { BuildLimits, BuildQueue } from 'busbar/api/builds'
import { projectTable } from 'busbar/api/projects'
import type { Database, Tx } from 'busbar/sdk'
import { isUnderWay } from './owner-turn-store.js'
import { waitForTurn } from './turn-lock.js'

/** A deployment whose build waits for its admission. */
export interface QueuedDeployment {
  readonly id: string
  readonly project_id: string
  readonly owner_id: string
  readonly application_id: string
  readonly queued_at: Date
  readonly waiting_for: string | null
  readonly waiting_cause: string | null
  readonly seen_at: Date | null
  /** Its owner may have one more under way, after those that have waited longer. */
  readonly has_room: boolean
}

interface Promised {
  readonly id: string
  readonly project_id: string
  readonly owner_id: string
  readonly admitted_memory: number | null
}

interface Entered {
  readonly admitted_at: Date | null
  readonly admitted_memory: number
  readonly admitted_cpus: number
}

const waits = "status = 'pending' and queued_at is not null and admitted_at is null"
const builds = "status in ('pending', 'building') and admitted_at is not null"

const owner = `(select p.user_id from ${projectTable.name} p where p.id = project_id) as owner_id`

/** The queue of builds: it is the deployments themselves, so that it survives a restart and no entry outlives its deployment. */
export class BuildQueueStore {
  constructor(private readonly db: Database) {}

  /** Locks the queue, for all processes, until the transaction ends. */
  async lock(tx: Tx): Promise<void> {
    await waitForTurn(this.db, 'deployments.build-queue', tx)
  }

  /** The limits of one that was admitted; null while it was not, and undefined when it has ended, as a cancelled one has. */
  async enter(id: string, now: Date, tx: Tx): Promise<BuildLimits | null | undefined> {
    const [row] = await this.db.sql<Entered>(
      `update $schema.deployment set queued_at = coalesce(queued_at, :now)
       where id = :id and status = 'pending' and cancel_requested_at is null
       returning admitted_at, admitted_memory, admitted_cpus`,
      { id, now },
      tx
    )
    if (row === undefined || row.admitted_at === null) return row === undefined ? undefined : null
    return { memoryBytes: Number(row.admitted_memory), cpus: row.admitted_cpus }
  }

  async hasWaiting(): Promise<boolean> {
    return (await this.db.sql(`select from $schema.deployment where ${waits} limit 1`)).length === 1
  }

  /** `most` of one owner may be under way. */
  async waiting(tx: Tx, most: number): Promise<readonly QueuedDeployment[]> {
    return await this.db.sql<QueuedDeployment>(
      `
      with waiting as (
        select d.id, project_id, ${owner}, application_id, queued_at, waiting_for, waiting_cause, seen_at from $schema.deployment d where ${waits}),
      busy as (
        select p.user_id, count(*) as total from $schema.deployment d join ${projectTable.name} p on p.id = d.project_id
        where ${isUnderWay} and p.user_id in (select owner_id from waiting) group by p.user_id)
      select waiting.*, row_number() over (partition by owner_id order by queued_at, id) <= :most - coalesce(total, 0) as has_room
      from waiting left join busy on user_id = owner_id order by queued_at, id`,
      { most },
      tx
    )
  }

  async running(tx: Tx): Promise<BuildQueue['running']> {
    const rows = await this.db.sql<Promised>(
      `select d.id, project_id, ${owner}, admitted_memory from $schema.deployment d where ${builds}`,
      [],
      tx
    )
    return rows.map(({ id, project_id: projectId, owner_id: ownerId, admitted_memory: memory }) => ({
      id,
      projectId,
      ownerId,
      memoryBytes: Number(memory ?? 0)
    }))
  }

  /** By project and by owner. */
  async lastAdmitted(
    {
      projectIds,
      ownerIds
    }: { readonly projectIds: readonly string[]; readonly ownerIds: readonly string[] },
    since: Date,
    tx: Tx
  ): Promise<ReadonlyMap<string, Date>> {
    const rows = await this.db.sql<{ id: string; admitted_at: Date }>(
      `select project_id as id, max(admitted_at) as admitted_at from $schema.deployment
       where project_id = any(cast(:projectIds as uuid[])) and admitted_at > :since group by project_id
       union all
       select p.user_id, max(admitted_at) from $schema.deployment d join ${projectTable.name} p on p.id = d.project_id
       where p.user_id = any(cast(:ownerIds as uuid[])) and admitted_at > :since group by p.user_id`,
      { projectIds: [...new Set(projectIds)], ownerIds: [...new Set(ownerIds)], since },
      tx
    )
    return new Map(rows.map(({ id, admitted_at: at }) => [id, at]))
  }

  async admit(id: string, { memoryBytes, cpus }: BuildLimits, now: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      "update $schema.deployment set admitted_at = :now, admitted_memory = :memoryBytes, admitted_cpus = :cpus, waiting_for = null where id = :id and status = 'pending'",
      { id, memoryBytes, cpus, now },
      tx
    )
  }

  async note(id: string, waitingFor: string, tx: Tx): Promise<void> {
    await this.db.sql(
      "update $schema.deployment set waiting_for = ? where id = ? and status = 'pending'",
      [waitingFor, id],
      tx
    )
  }

  /** The cause that the log has told. */
  async noteReported(id: string, cause: string): Promise<void> {
    await this.db.sql('update $schema.deployment set waiting_cause = ? where id = ?', [cause, id])
  }
}
