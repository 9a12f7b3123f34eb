import { randomUUID } from 'node:crypto'
import type { Clock, Database, Health, JobContext, Jobs, Log, Secrets } from 'busbar/sdk'
import type { Mailer, MailMessage } from './api.js'
import type { MailStore, StoredMessage } from './mail-store.js'
import { problems } from './problems.js'
import { renderEmail } from './render-email.js'
import type { MailSettings } from './settings.js'
import { type Envelope, MailRefused, type Smtp } from './smtp.js'

interface OutboxParts {
  readonly db: Database
  readonly store: MailStore
  readonly jobs: Jobs
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly smtp: Smtp
  /** Asked for each message, so that a change counts from the next one on; undefined: mail is off. */
  readonly settings: () => Promise<MailSettings | undefined>
}

export const deliverJob = 'deliver'
/** The last one is tried about half an hour after the first. */
export const deliveryAttempts = 8
export interface DeliverPayload {
  readonly messageId: string
}

const addressShape = /^[^\s@<>(),:;"\\\p{Cc}]+@[^\s@<>(),:;"\\\p{Cc}]+$/u

/** Stores messages encrypted until they are sent, and sends them. */
export class Outbox implements Mailer {
  /** Why the newest attempt failed; undefined after one that did not. */
  #lastFailure: string | undefined

  constructor(private readonly parts: OutboxParts) {}

  async isOn(): Promise<boolean> {
    return (await this.parts.settings()) !== undefined
  }

  async send({ to, expiresAt, ...email }: MailMessage, tx?: Parameters<Mailer['send']>[1]): Promise<void> {
    const { db, store, jobs, clock, secrets } = this.parts
    if (!(await this.isOn())) throw problems.off()
    if (to.length > 254 || !addressShape.test(to)) throw problems.recipient()
    const id = randomUUID()
    const envelope: Envelope = { id, to, ...renderEmail(email) }
    const content = secrets.seal(JSON.stringify(envelope), placeOf(id))
    if (tx === undefined) await db.transaction(write)
    else await write(tx)

    async function write(within: NonNullable<typeof tx>): Promise<void> {
      await store.insert({ id, content, expires_at: expiresAt ?? null, created_at: clock.now() }, within)
      await jobs.enqueue(deliverJob, { messageId: id } satisfies DeliverPayload, {}, within)
    }
  }

  /** One attempt to send a message; throws when it is to be tried again. */
  async deliver({ messageId }: DeliverPayload, { attempt }: Pick<JobContext, 'attempt'>): Promise<void> {
    const { store, log, clock } = this.parts
    const message = await store.find(messageId)
    if (message === undefined) return
    if (message.expires_at !== null && message.expires_at <= clock.now()) {
      log.warn({ messageId, lastFailure: this.#lastFailure }, 'a mail was not sent before it expired')
      await store.delete(messageId)
      return
    }
    try {
      await this.#transmit(message)
      this.#lastFailure = undefined
    } catch (error) {
      if (error instanceof MailRefused && error.isFinal) {
        log.warn({ messageId, reason: error.message }, 'a mail was refused for good')
      } else {
        this.#lastFailure = error instanceof Error ? error.message : String(error)
        if (attempt < deliveryAttempts) throw error
        log.error({ messageId, reason: this.#lastFailure }, 'a mail could not be sent; it is not tried again')
      }
    }
    await store.delete(messageId)
  }

  health(): Health {
    return this.#lastFailure === undefined
      ? { status: 'ok' }
      : { status: 'degraded', reason: this.#lastFailure }
  }

  async #transmit({ id, content }: StoredMessage): Promise<void> {
    const { settings, secrets, smtp } = this.parts
    const current = await settings()
    if (current === undefined) throw problems.off()
    await smtp(current, JSON.parse(secrets.open(content, placeOf(id))) as Envelope)
  }
}

const placeOf = (row: string) => ({ table: 'message', column: 'content', row })
