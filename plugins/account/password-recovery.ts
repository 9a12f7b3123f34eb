import { hash } from 'node:crypto'
import type { Client, Identity } from 'busbar/api/identity'
import type { Mailer } from 'busbar/api/mail'
import { type Database, type Instance, type Jobs, type Log, publicLink } from 'busbar/sdk'
import { passwordResetEmail } from './email-templates.js'

interface PasswordRecoveryParts {
  readonly identity: Identity
  readonly db: Database
  readonly jobs: Jobs
  readonly instance: Instance
  readonly mailer: { get(): Mailer | undefined }
  readonly log: Log
}

export const recoveryJob = 'password-recovery'
export interface RecoveryPayload {
  readonly email: string
}

const sent = { status: 'if an account with this email exists, a link to reset its password is on its way' }
/** Depends on the platform alone: it reveals nothing of the address. */
const notSent = { status: 'this platform sends no mail: ask an administrator to set a new password for you' }

/** A forgotten password: the link goes by mail, and only who reads that mail can use it. */
export class PasswordRecovery {
  readonly #page: string | undefined

  constructor(private readonly parts: PasswordRecoveryParts) {
    this.#page = publicLink(parts.instance, '/reset-password')
  }

  /**
   * The same answer after the same work, whether or not an account has the address: that is looked up by a
   * job, after the answer.
   */
  async request(email: string): Promise<{ status: string }> {
    const key = hash('sha256', email.trim().toLowerCase(), 'base64url')
    await this.parts.jobs.enqueue(recoveryJob, { email } satisfies RecoveryPayload, { key })
    return (await this.#configuredMailer()) === undefined ? notSent : sent
  }

  /** The link and the mail that carries it exist both or neither. */
  async sendLink({ email }: RecoveryPayload): Promise<void> {
    const { identity, db, log } = this.parts
    const sender = await this.#configuredMailer()
    if (sender === undefined) {
      log.warn('a password reset was requested, but no link can be mailed: set SMTP_HOST and PUBLIC_BASE_URL')
      return
    }
    await db.transaction(async tx => {
      const reset = await identity.openPasswordReset(email, tx)
      if (reset === undefined) return
      const url = `${sender.page}?token=${reset.secret}`
      await sender.mailer.send(
        { to: reset.email, expiresAt: reset.expiresAt, ...passwordResetEmail(url) },
        tx
      )
    })
  }

  async complete(
    { token: secret, new_password: newPassword }: { token: string; new_password: string },
    client: Client
  ) {
    const answer = {
      status: 'password updated',
      user_id: await this.parts.identity.completePasswordReset({ secret, newPassword }, client)
    }
    return answer
  }

  async #configuredMailer(): Promise<{ readonly mailer: Mailer; readonly page: string } | undefined> {
    const mailer = this.parts.mailer.get()
    return mailer !== undefined && this.#page !== undefined && (await mailer.isOn())
      ? { mailer, page: this.#page }
      : undefined
  }
}
