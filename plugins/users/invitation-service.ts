import type { Identity, InvitationRow } from 'busbar/api/identity'
import type { Mail } from 'busbar/api/mail'
import {
  type Database,
  type Instance,
  type Page,
  publicLink,
  type Role,
  type SessionCaller
} from 'busbar/sdk'
import { invitationLetter } from './letters.js'

interface InvitationServiceParts {
  readonly identity: Identity
  readonly db: Database
  readonly instance: Instance
  readonly mail: { get(): Mail | undefined }
}

const path = '/accept-invite'

/** How somebody gets an account without anybody else knowing their password. */
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
    const mail = await this.#poster()
    return await db.transaction(async tx => {
      const { row, secret } = await identity.invite(caller, { email: wanted.email, role }, tx)
      const link = `${this.#page ?? path}?token=${secret}`
      if (mail === undefined) return { ...row, link }
      const inviter = caller.user.username === '' ? caller.user.email : caller.user.username
      await mail.send(
        { to: row.email, expiresAt: row.expires_at, ...invitationLetter(link, { role, inviter }) },
        tx
      )
      return row
    })
  }

  async revoke(invitationId: string): Promise<void> {
    await this.parts.identity.revokeInvitation(invitationId)
  }

  async #poster(): Promise<Mail | undefined> {
    const mail = this.parts.mail.get()
    return mail !== undefined && this.#page !== undefined && (await mail.isOn()) ? mail : undefined
  }
}
