import type { Identity, InvitationRow } from 'busbar/api/identity'
import type { Mailer } from 'busbar/api/mail'
import {
  type Database,
  type Instance,
  type Page,
  publicLink,
  type Role,
  type SessionCaller
} from 'busbar/sdk'
import { invitationEmail } from './email-templates.js'

interface InvitationServiceParts {
  readonly identity: Identity
  readonly db: Database
  readonly instance: Instance
  readonly mailer: { get(): Mailer | undefined }
}

const path = '/accept-invite'

/** How a user gets an account whose password only they know. */
export class InvitationService {
  readonly #page: string | undefined

  constructor(private readonly parts: InvitationServiceParts) {
    this.#page = publicLink(parts.instance, path)
  }

  async list(page: Page) {
    return await this.parts.identity.listInvitations(page)
  }

  /**
   * The link goes by mail. Where that cannot be, the admin is given it, this once: a path below the
   * dashboard's address when the platform does not know that.
   */
  async invite(
    caller: SessionCaller,
    wanted: { readonly email: string; readonly role?: Role }
  ): Promise<InvitationRow & { link?: string }> {
    const { identity, db } = this.parts
    const role = wanted.role ?? 'member'
    const mailer = await this.#configuredMailer()
    return await db.transaction(async tx => {
      const { row, secret } = await identity.invite(caller, { email: wanted.email, role }, tx)
      const link = `${this.#page ?? path}?token=${secret}`
      if (mailer === undefined) return { ...row, link }
      const inviter = caller.user.username === '' ? caller.user.email : caller.user.username
      await mailer.send(
        { to: row.email, expiresAt: row.expires_at, ...invitationEmail(link, { role, inviter }) },
        tx
      )
      return row
    })
  }

  async revoke(invitationId: string): Promise<void> {
    await this.parts.identity.revokeInvitation(invitationId)
  }

  async #configuredMailer(): Promise<Mailer | undefined> {
    const mailer = this.parts.mailer.get()
    return mailer !== undefined && this.#page !== undefined && (await mailer.isOn()) ? mailer : undefined
  }
}
