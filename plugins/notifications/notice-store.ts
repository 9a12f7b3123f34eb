import { userTable } from 'busbar/api/identity'
import type { Database, Tx } from 'busbar/sdk'

/** What is told. */
export interface Notice {
  readonly id: string
  readonly type: string
  readonly title: string
  readonly body: string
  readonly link: string | null
  readonly project_id: string | null
  readonly is_for_admins: boolean
  readonly created_at: Date
}

/** Writes what has been told, and whom. */
export class NoticeStore {
  constructor(private readonly db: Database) {}

  /** False when it is there already. */
  async insert(notice: Notice, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `
      insert into $schema.notice (id, type, title, body, link, project_id, is_for_admins, created_at)
      values (:id, :type, :title, :body, :link, :project_id, :is_for_admins, :created_at)
      on conflict (id) do nothing returning id`,
      { ...notice },
      tx
    )
    return rows.length > 0
  }

  /**
   * Puts it into the inboxes of all these users, with the next position of each; the ids of those who exist. Inboxes are
   * taken in one order, so that two notices never wait for each other.
   */
  async enter(
    { id, created_at: createdAt }: Notice,
    userIds: readonly string[],
    tx: Tx
  ): Promise<readonly string[]> {
    const rows = await this.db.sql<{ user_id: string }>(
      `
      with told as (
        insert into $schema.inbox as inbox (user_id, last_position)
        select u.id, 1 from ${userTable.name} u where u.id = any(cast(:userIds as uuid[])) order by u.id for key share
        on conflict (user_id) do update set last_position = inbox.last_position + 1
        returning user_id, last_position)
      insert into $schema.entry (user_id, position, notice_id, created_at)
      select user_id, last_position, :id, :createdAt from told returning user_id`,
      { userIds, id, createdAt },
      tx
    )
    return rows.map(({ user_id: userId }) => userId)
  }

  /** Leaves the newest `keep` positions in the inboxes of these users. */
  async trim(userIds: readonly string[], keep: number, tx: Tx): Promise<void> {
    await this.db.sql(
      `
      delete from $schema.entry e using $schema.inbox i
      where i.user_id = any(cast(:userIds as uuid[])) and e.user_id = i.user_id and e.position <= i.last_position - :keep`,
      { userIds, keep },
      tx
    )
  }

  /** Deletes the oldest from before that time, `atMost` so many, whoever has read them; how many they were. */
  async forget(before: Date, atMost: number): Promise<number> {
    const rows = await this.db.sql(
      `
      delete from $schema.notice where id in (
        select id from $schema.notice where created_at < :before order by created_at limit :atMost) returning 1 as one`,
      { before, atMost }
    )
    return rows.length
  }

  /** Deletes those of before that time that are in no inbox any more, `atMost` so many; how many they were. */
  async forgetUnheld(before: Date, atMost: number): Promise<number> {
    const rows = await this.db.sql(
      `
      delete from $schema.notice where id in (
        select n.id from $schema.notice n where n.created_at < :before
          and not exists (select 1 from $schema.entry e where e.notice_id = n.id)
        order by n.created_at limit :atMost) returning 1 as one`,
      { before, atMost }
    )
    return rows.length
  }

  async removeOfProject(projectId: string): Promise<void> {
    await this.db.sql('delete from $schema.notice where project_id = ?', [projectId])
  }
}
