import { identity } from 'busbar/api/identity'
import { mailer } from 'busbar/api/mail'
import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import {
  type Contributor,
  keepForDays,
  kernel,
  type NotificationKinds,
  optional,
  type StartContext
} from 'busbar/sdk'
import { AlertMail } from './alert-mail.js'
import { Delivery } from './delivery.js'
import { InboxFeed } from './inbox-feed.js'
import { InboxService } from './inbox-service.js'
import { InboxStore } from './inbox-store.js'
import { NoticeStore } from './notice-store.js'
import type { Settings } from './settings.js'
import { toldSignal } from './told.js'

export const needs = {
  db: kernel.database,
  bus: kernel.bus,
  secrets: kernel.secrets,
  clock: kernel.clock,
  kinds: kernel.notificationKinds,
  instance: kernel.instance,
  mailer: optional(mailer),
  identity,
  projects: projectDirectory
}

/** Each from as many inboxes as it was told to. */
const deletedAtOnce = 1_000
/** A younger one may be delivered a second time, which is known by its being there. */
const unheldDays = 1

/** The running plugin. */
export interface Notifications {
  readonly inbox: InboxService
  readonly delivery: Delivery
  readonly notices: NoticeStore
  readonly kinds: NotificationKinds
  /** Deletes what is too old, until its signal aborts. */
  readonly retain: (signal: AbortSignal) => Promise<void>
  /** Deletes what is in no inbox any more, until its signal aborts. */
  readonly forgetUnheld: (signal: AbortSignal) => Promise<void>
}

export function startNotifications({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Notifications {
  const { db, bus, clock, kinds } = use
  const inbox = new InboxStore(db)
  const notices = new NoticeStore(db)
  const feed = new InboxFeed({ inbox, clock, log })
  const stopListening = bus.onSignal(toldSignal.topic, data => {
    feed.wake(toldSignal.read(data))
  })
  onStop(() => {
    stopListening()
    feed.close()
  })
  return {
    inbox: new InboxService({ inbox, feed, clock }),
    delivery: new Delivery({ ...use, notices, mail: new AlertMail({ ...use, log }) }),
    notices,
    kinds,
    retain: async signal => {
      await keepForDays({
        days: config.retention_days,
        forget: async (before, atMost) => await notices.forget(before, atMost),
        batch: deletedAtOnce,
        what: 'old notifications',
        clock,
        log,
        signal
      })
    },
    forgetUnheld: async signal => {
      await keepForDays({
        days: unheldDays,
        forget: async (before, atMost) => await notices.forgetUnheld(before, atMost),
        batch: deletedAtOnce,
        what: 'notifications that are in no inbox any more',
        clock,
        log,
        signal
      })
    }
  }
}

export function notificationContributions(contribute: Contributor, { notices }: Notifications): void {
  contribute(projectTeardown, 'notifications', {
    teardown: async projectId => {
      await notices.removeOfProject(projectId)
    }
  })
}
