import { projectTable, reachableIn } from 'busbar/api/projects'
import type { Database, Page, Reach } from 'busbar/sdk'
import type { Notification } from './schemas.js'

/** A notification with what decides who may see it. */
export interface StoredNotification {
  readonly position: number
  readonly project_id: string | null
  readonly is_for_admins: boolean
  readonly notification: Notification
}

/** Where a reader of an inbox is: behind the notification with this position. */
export interface Place {
  readonly userId: string
  readonly position: number
}

type Row = Notification & Omit<StoredNotification, 'notification'>
/** Who reads, as parameters of a statement. */
type Reader = readonly [caller: string | null, pins: Reach['pins'], user: string | null]
const readerOf = ({ callerId, pins, userId }: Reach): Reader => [callerId, pins, userId]

const columns =
  'n.id, e.user_id, n.type, n.title, n.body, n.link, e.read_at is not null as read, n.created_at'
/** What a reader may see of their inbox: of projects and of what is for admins, what they have access to now. */
const visible = `$schema.entry e join $schema.notice n on n.id = e.notice_id left join ${projectTable.name} p on p.id = n.project_id
  where e.user_id = $1 and case when n.project_id is null then $2::uuid[] is null and (not n.is_for_admins or $3::uuid is null)
    else ${reachableIn('p', { pins: '$2', user: '$3' })} end`

/** Reads inboxes, and writes what their owners do with them. */
export class InboxStore {
  readonly #page
  readonly #unread
  readonly #read
  readonly #readAll
  readonly #remove
  readonly #last
  readonly #after

  constructor(db: Database) {
    this.#page = db.statement<Notification, [...Reader, number, number]>(
      'inbox-page',
      `select ${columns} from ${visible} order by e.created_at desc, e.notice_id desc limit $4 offset $5`
    )
    this.#unread = db.statement<{ total: number }, Reader>(
      'inbox-unread',
      `select count(*) as total from ${visible} and e.read_at is null`
    )
    this.#read = db.statement<Notification, [...Reader, string, Date]>(
      'inbox-read',
      `
      update $schema.entry seen set read_at = coalesce(seen.read_at, $5)
      from (select ${columns} from ${visible} and e.notice_id = $4) as found
      where seen.user_id = $1 and seen.notice_id = found.id
      returning found.id, found.user_id, found.type, found.title, found.body, found.link, true as read, found.created_at`
    )
    this.#readAll = db.statement<object, [...Reader, Date]>(
      'inbox-read-all',
      `
      update $schema.entry set read_at = $4
      where user_id = $1 and read_at is null and position in (select e.position from ${visible} and e.read_at is null)`
    )
    this.#remove = db.statement<object, [...Reader, string]>(
      'inbox-remove',
      `
      delete from $schema.entry where user_id = $1 and position in (select e.position from ${visible} and e.notice_id = $4)
      returning 1 as one`
    )
    this.#last = db.statement<{ last_position: number }, [string]>(
      'inbox-last',
      'select last_position from $schema.inbox where user_id = $1'
    )
    this.#after = db.statement<Row & { place: number }, [readonly string[], readonly number[], number]>(
      'inbox-after',
      `
      select w.place, ahead.* from unnest($1::uuid[], $2::bigint[]) with ordinality as w (user_id, position, place)
      cross join lateral (
        select e.position, n.project_id, n.is_for_admins, ${columns} from $schema.entry e join $schema.notice n on n.id = e.notice_id
        where e.user_id = w.user_id and e.position > w.position order by e.position limit $3
      ) ahead order by w.place, ahead.position`
    )
  }

  /** Newest first. */
  async page(reach: Reach, { limit, offset }: Page): Promise<Notification[]> {
    return await this.#page([...readerOf(reach), limit, offset])
  }

  async countUnread(reach: Reach): Promise<number> {
    return (await this.#unread(readerOf(reach)))[0]?.total ?? 0
  }

  /** The row, marked as read; undefined when there is none that the reader may see. */
  async markRead(reach: Reach, id: string, at: Date): Promise<Notification | undefined> {
    return (await this.#read([...readerOf(reach), id, at]))[0]
  }

  async markAllRead(reach: Reach, at: Date): Promise<void> {
    await this.#readAll([...readerOf(reach), at])
  }

  /** False when there is none that the reader may see. */
  async remove(reach: Reach, id: string): Promise<boolean> {
    return (await this.#remove([...readerOf(reach), id])).length > 0
  }

  /** The position of the newest; 0 in an inbox that never had one. All up to it is committed. */
  async lastPosition(userId: string): Promise<number> {
    return (await this.#last([userId]))[0]?.last_position ?? 0
  }

  /** For each of the places, in their order, what comes behind it: `limit` at most, in one statement. */
  async after(
    places: readonly Place[],
    limit: number
  ): Promise<ReadonlyArray<readonly StoredNotification[]>> {
    const found: StoredNotification[][] = places.map(() => [])
    const rows = await this.#after([
      places.map(({ userId }) => userId),
      places.map(({ position }) => position),
      limit
    ])
    for (const { place, position, project_id, is_for_admins, ...notification } of rows)
      found[place - 1]?.push({ position, project_id, is_for_admins, notification })
    return found
  }
}
