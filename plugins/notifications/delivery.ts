import type { Identity } from 'busbar/api/identity'
import type { ProjectDirectory } from 'busbar/api/projects'
import type { Bus, Database, RaisedNotification, Secrets, Tx } from 'busbar/sdk'
import type { AlertMail } from './alert-mail.js'
import type { Notice, NoticeStore } from './notice-store.js'
import { toldSignal } from './told.js'

/** How many notifications an inbox holds; the oldest go. */
export const inboxSize = 1_000

interface DeliveryParts {
  readonly db: Database
  readonly notices: NoticeStore
  readonly identity: Pick<Identity, 'adminIds' | 'wanting'>
  readonly projects: Pick<ProjectDirectory, 'find' | 'usersOf'>
  readonly secrets: Pick<Secrets, 'clean'>
  readonly bus: Pick<Bus, 'signal'>
  readonly mail: Pick<AlertMail, 'owner' | 'send'>
}

/** Puts what has been told into inboxes. */
export class Delivery {
  constructor(private readonly parts: DeliveryParts) {}

  /** Once, however often it is asked to: all or nothing of it is committed. The statements do not grow with the users. */
  async deliver(raised: RaisedNotification): Promise<void> {
    const { db, notices, bus, mail } = this.parts
    const owner = await mail.owner(raised)
    await db.transaction(async tx => {
      const userIds = await this.#recipients(raised, tx)
      if (userIds.length === 0) return
      const notice = this.#noticeOf(raised)
      if (!(await notices.insert(notice, tx))) return
      if (owner !== undefined && userIds.includes(owner.userId)) await mail.send(owner, notice, tx)
      const told = await notices.enter(notice, userIds, tx)
      // None, where a user was deleted at this moment; no names would stand for everybody.
      if (told.length === 0) return
      await notices.trim(told, inboxSize, tx)
      await bus.signal(toldSignal.topic, toldSignal.write(told), tx)
    })
  }

  /** Who may know of it, and has not declined to. */
  async #recipients(
    { audience, preference, occurredAt }: RaisedNotification,
    tx: Tx
  ): Promise<readonly string[]> {
    const { identity, projects } = this.parts
    const projectId = audience.kind === 'admins' ? null : audience.projectId
    // What is written of a project is seen by its removal, which begins after this transaction.
    if (projectId !== null && (await projects.find(projectId, tx)) === undefined) return []
    const userIds =
      audience.kind === 'admins'
        ? await identity.adminIds(tx)
        : audience.kind === 'user'
          ? [audience.userId]
          : await projects.usersOf(audience.projectId, occurredAt, tx)
    return preference === null ? userIds : await identity.wanting(preference, userIds, tx)
  }

  #noticeOf({ id, type, title, body, link, audience, occurredAt }: RaisedNotification): Notice {
    const { secrets } = this.parts
    return {
      id,
      type,
      title: secrets.clean(title),
      body: secrets.clean(body),
      link: link === null ? null : secrets.clean(link),
      project_id: audience.kind === 'admins' ? null : audience.projectId,
      is_for_admins: audience.kind === 'admins',
      created_at: occurredAt
    }
  }
}
