import { projectTable } from 'busbar/api/projects'
import type { Database, Tx } from 'busbar/sdk'
import { activeStatuses } from '../records/deployment-state.js'
import { waitForTurn } from './turn-lock.js'

/** A deployment that waits for its turn. */
interface WaitingDeployment {
  readonly id: string
  readonly application_id: string
}

const active = `('${activeStatuses.join("', '")}')`
/** Earlier releases put deployments into the queue of builds without a turn. */
const hasTurn = `d.status in ${active} and (d.begun_at is not null or d.queued_at is not null or d.status <> 'pending')`
/** One that waits in the queue of builds holds no worker. */
export const isUnderWay = `${hasTurn} and not (d.status = 'pending' and d.queued_at is not null and d.admitted_at is null)`
const waits =
  "d.status = 'pending' and d.begun_at is null and d.queued_at is null and d.waiting_for is not null"

/** Turns are noted in the deployments themselves: no turn outlives its deployment. */
export class OwnerTurnStore {
  constructor(private readonly db: Database) {}

  /** Locks the giving of turns, for all processes, until the transaction ends. */
  async lock(tx: Tx): Promise<void> {
    await waitForTurn(this.db, 'deployments.turns', tx)
  }

  /**
   * Whether it has its turn, and how many others of the same owner's projects come first: under way, or asked for earlier and
   * waiting. Undefined when it is gone.
   */
  async standing(
    id: string,
    tx: Tx
  ): Promise<{ readonly has_turn: boolean; readonly before: number } | undefined> {
    const [row] = await this.db.sql<{ has_turn: boolean; before: number }>(
      `
      with mine as (
        select d.id, d.started_at, own.user_id, ${hasTurn} as has_turn
        from $schema.deployment d join ${projectTable.name} own on own.id = d.project_id where d.id = :id)
      select has_turn, (
        select cast(count(*) as int) from ${projectTable.name} p join $schema.deployment d on d.project_id = p.id
        where p.user_id = mine.user_id and d.id <> mine.id
          and ((${isUnderWay}) or (${waits} and (d.started_at, d.id) < (mine.started_at, mine.id)))) as before
      from mine`,
      { id },
      tx
    )
    return row
  }

  async give(id: string, now: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      "update $schema.deployment set begun_at = ?, waiting_for = null where id = ? and status = 'pending'",
      [now, id],
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

  /** Those whose turn has come, of each owner the ones that were asked for first. */
  async due(most: number): Promise<readonly WaitingDeployment[]> {
    return await this.db.sql<WaitingDeployment>(
      `
      with waiting as (
        select d.id, d.application_id, p.user_id, row_number() over (partition by p.user_id order by d.started_at, d.id) as place
        from $schema.deployment d join ${projectTable.name} p on p.id = d.project_id where ${waits}),
      busy as (
        select p.user_id, count(*) as total from $schema.deployment d join ${projectTable.name} p on p.id = d.project_id
        where ${isUnderWay} and p.user_id in (select user_id from waiting) group by p.user_id)
      select id, application_id from waiting left join busy using (user_id) where place <= :most - coalesce(total, 0)`,
      { most }
    )
  }
}
