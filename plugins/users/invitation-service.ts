import type { Identity, InvitationRow, ListRange } from 'busbar/api/identity'
import type { Mail } from 'busbar/api/mail'
import { publicLink, type Database, type Instance, type Role, type SessionCaller } from 'busbar/sdk'
import { invitationLetter } from './letters.js'

export interface InvitationServiceParts {
  readonly identity: Identity
  readonly database: Database
  readonly instance: Instance
  readonly mail: { get(): Mail | undefined }
}

const path = '/accept-invite'

/** How somebody gets an account without anybody else knowing their password. */
export class InvitationService {
  readonly #parts: InvitationServiceParts
  readonly #page: string | undefined

  constructor (parts: InvitationServiceParts) {
    this.#parts = parts
    this.#page = publicLink(parts.instance, path)
  }

  list = async (range: ListRange) => await this.#parts.identity.listInvitations(range)

  /**
   * The link goes by mail. Where that cannot be, the admin is given it, this once: a path below the
   * dashboard's address when the platform does not know that.
   */
  async invite (caller: SessionCaller, wanted: { readonly email: string, readonly role?: Role }): Promise<InvitationRow & { link?: string }> {
    const { identity, database } = this.#parts
    const role = wanted.role ?? 'member'
    const mail = await this.#poster()
    return await database.transaction(async tx => {
      const { row, secret } = await identity.invite(caller, { email: wanted.email, role }, tx)
      const link = `${this.#page ?? path}?token=${secret}`
      if (mail === undefined) return { ...row, link }
      const inviter = caller.user.username === '' ? caller.user.email : caller.user.username
      await mail.send({ to: row.email, expiresAt: row.expires_at, ...invitationLetter(link, { role, inviter }) }, tx)
      return row
    })
  }

  async revoke (invitationId: string): Promise<void> {
    await this.#parts.identity.revokeInvitation(invitationId)
  }

  async #poster (): Promise<Mail | undefined> {
    const mail = this.#parts.mail.get()
    return mail !== undefined && this.#page !== undefined && await mail.isOn() ? mail : undefined
  }
}
