import type { Database, Tx } from 'busbar/sdk'
import { type RecentTimes, recentTimes, unattendedMs } from './overdue.js'

export interface SessionRow {
  readonly id: string
  readonly user_id: string
  readonly user_email: string
  readonly user_username: string
  readonly login_session_id: string
  readonly ip_address: string
  readonly project_id: string
  readonly application_id: string
  readonly container_id: string
  readonly terminal_id: string
  readonly shell: string
  readonly created_at: Date
  readonly opened_at: Date | null
  readonly process_id: string | null
  readonly ended_at: Date | null
}
type NewSession = Omit<SessionRow, 'opened_at' | 'process_id' | 'ended_at'>

/** How far a process has come. */
interface ProcessBeat {
  readonly process_id: string
  readonly beat: string
}

const columns =
  'id, user_id, user_email, user_username, login_session_id, ip_address, project_id, application_id, container_id, terminal_id, shell, created_at, opened_at, process_id, ended_at'
/** More are ended or cleared in the next round. */
const roundSize = 100

export class SessionStore {
  constructor(private readonly db: Database) {}

  /** False when the user has `limit` sessions that go on or may still be opened. */
  async create(session: NewSession, limit: number): Promise<boolean> {
    const { after, until } = recentTimes(session.created_at, unattendedMs)
    return await this.db.transaction(async tx => {
      await this.db.sql(
        "select pg_advisory_xact_lock(hashtextextended('terminal.session/' || ?, 0))",
        [session.user_id],
        tx
      )
      const [{ count = 0 } = {}] = await this.db.sql<{ count: number }>(
        `select count(*)::integer as count from $schema.session
        where user_id = ? and ended_at is null and (opened_at is not null or (created_at > ? and created_at <= ?))`,
        [session.user_id, after, until],
        tx
      )
      if (count >= limit) return false
      await this.db.table<SessionRow>('session', tx).insert(session)
      return true
    })
  }

  async find(id: string): Promise<SessionRow | undefined> {
    const [row] = await this.db.sql<SessionRow>(`select ${columns} from $schema.session where id = ?`, [id])
    return row
  }

  /** The first who asks gets it. */
  async open(id: string, processId: string, now: Date): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.session set process_id = :processId, opened_at = :now
      where id = :id and opened_at is null and ended_at is null returning id`,
      { id, processId, now }
    )
    return rows.length > 0
  }

  /** What runs on in this process. */
  async beat(processId: string): Promise<void> {
    await this.db.sql(
      'update $schema.session set beat = beat + 1 where process_id = ? and ended_at is null',
      [processId]
    )
  }

  async beats(): Promise<readonly ProcessBeat[]> {
    return await this.db.sql<ProcessBeat>(
      `select process_id, max(beat)::text as beat from $schema.session
      where ended_at is null and process_id is not null group by process_id order by process_id`
    )
  }

  /** Undefined when it has ended before, or is not there. */
  async end(id: string, now: Date, tx: Tx): Promise<SessionRow | undefined> {
    const [row] = await this.db.sql<SessionRow>(
      `update $schema.session set ended_at = :now where id = :id and ended_at is null returning ${columns}`,
      { id, now },
      tx
    )
    return row
  }

  async remove(id: string): Promise<void> {
    await this.db.sql('delete from $schema.session where id = ?', [id])
  }

  /** Sessions that were not made in that time and that nobody has opened. */
  async unopened({ after, until }: RecentTimes): Promise<readonly SessionRow[]> {
    return await this.db.sql<SessionRow>(
      `select ${columns} from $schema.session where opened_at is null and ended_at is null
      and not (created_at > ? and created_at <= ?)
      order by created_at, id limit ${roundSize}`,
      [after, until]
    )
  }

  /** Of a process, those that go on. */
  async of(processId: string): Promise<readonly SessionRow[]> {
    return await this.db.sql<SessionRow>(
      `select ${columns} from $schema.session where process_id = ? and ended_at is null order by id limit ${roundSize}`,
      [processId]
    )
  }

  /** Sessions that did not end in that time, and of which something may still run. */
  async uncleared({ after, until }: RecentTimes): Promise<readonly SessionRow[]> {
    return await this.db.sql<SessionRow>(
      `select ${columns} from $schema.session where not (ended_at > ? and ended_at <= ?) order by ended_at, id limit ${roundSize}`,
      [after, until]
    )
  }
}
