import { type Clock, isProblem, type Page, type Reach, type SseFrame } from 'busbar/sdk'
import { readPosition } from './event-id.js'
import type { InboxFeed } from './inbox-feed.js'
import type { InboxStore, StoredNotification } from './inbox-store.js'
import { problems } from './problems.js'
import type { Notification } from './schemas.js'

interface InboxServiceParts {
  readonly inbox: InboxStore
  readonly feed: InboxFeed
  readonly clock: Clock
}

/** Who reads a stream, and whether they may go to a project now: rejects with a `Problem` where not. */
interface Reader {
  readonly userId: string
  readonly reach: Reach
  readonly requireProject: (projectId: string) => Promise<unknown>
}

/** The inbox of one user, as far as they have access to what it tells of. */
export class InboxService {
  constructor(private readonly parts: InboxServiceParts) {}

  async list(reach: Reach, page: Page): Promise<{ items: Notification[]; unread: number }> {
    const [items, unread] = await Promise.all([
      this.parts.inbox.page(reach, page),
      this.parts.inbox.countUnread(reach)
    ])
    return { items, unread }
  }

  async unread(reach: Reach): Promise<{ unread: number }> {
    return { unread: await this.parts.inbox.countUnread(reach) }
  }

  async markRead(reach: Reach, id: string): Promise<Notification> {
    const { inbox, clock } = this.parts
    const row = await inbox.markRead(reach, id, clock.now())
    if (row === undefined) throw problems.notFound()
    return row
  }

  async markAllRead(reach: Reach): Promise<void> {
    await this.parts.inbox.markAllRead(reach, this.parts.clock.now())
  }

  async remove(reach: Reach, id: string): Promise<{ status: string }> {
    if (!(await this.parts.inbox.remove(reach, id))) throw problems.notFound()
    return { status: 'deleted' }
  }

  /**
   * What comes into the inbox from now on, or behind the last event that the reader has (`lastEventId`). Resolves when
   * nothing that comes later can be missed.
   */
  async stream(
    reader: Reader,
    lastEventId: string | readonly string[] | undefined,
    signal: AbortSignal
  ): Promise<AsyncGenerator<SseFrame>> {
    const last = await this.parts.inbox.lastPosition(reader.userId)
    // One that is not there yet is of another database.
    const from = Math.min(readPosition(lastEventId) ?? last, last)
    return this.#frames(reader, from, signal)
  }

  async *#frames(reader: Reader, from: number, signal: AbortSignal): AsyncGenerator<SseFrame> {
    for (let position = from; ; ) {
      const found = await this.parts.feed.next({ userId: reader.userId, position }, signal)
      if (found === null) return
      for (const row of found) {
        position = row.position
        if (await mayRead(reader, row)) yield { id: String(position), data: row.notification }
      }
    }
  }
}

/** As the lists decide it. Rejects when it cannot be decided now. */
async function mayRead(
  { reach, requireProject }: Reader,
  { project_id: projectId, is_for_admins: isForAdmins }: StoredNotification
): Promise<boolean> {
  if (projectId === null) return reach.pins === null && (!isForAdmins || reach.userId === null)
  try {
    await requireProject(projectId)
    return true
  } catch (error) {
    if (isProblem(error) && (error.status === 403 || error.status === 404)) return false
    throw error
  }
}
