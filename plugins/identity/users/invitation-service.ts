import { randomBytes, randomUUID } from 'node:crypto'
import type { Clock, Database, Events, Page, Rows, SessionCaller, Tx } from 'busbar/sdk'
import {
  type Client,
  type InvitationRow,
  type Invitations,
  invitationAccepted,
  type SessionGrant
} from '../api.js'
import { digestOf } from '../digest.js'
import { checkPassword, type PasswordHasher } from '../passwords/password-hasher.js'
import { invitationPolicy } from '../policy.js'
import { problems } from '../problems.js'
import type { KnownDevices } from '../sessions/known-devices.js'
import { withCookies } from '../sessions/session-cookies.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import { checkedEmail } from './email.js'
import type { InvitationStore } from './invitation-store.js'
import type { UserStore } from './user-store.js'

interface InvitationServiceParts {
  readonly db: Database
  readonly events: Events
  readonly store: InvitationStore
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly issuer: SessionIssuer
  readonly devices: KnownDevices
  readonly clock: Clock
}

export class InvitationService implements Invitations {
  constructor(private readonly parts: InvitationServiceParts) {}

  async invite(
    caller: SessionCaller,
    { email, role }: Parameters<Invitations['invite']>[1],
    tx: Tx
  ): ReturnType<Invitations['invite']> {
    const { store, users, clock } = this.parts
    const address = checkedEmail(email)
    // From the row, not from the session: what a demotion that runs now takes away must not be given on.
    const inviter = await users.hold(caller.user.id, tx)
    if (inviter?.role !== 'admin') throw problems.sessionEnded()
    if ((await users.findByEmail(address, tx)) !== undefined)
      throw problems.emailTaken({ email: address }, { field: 'email' })
    const secret = randomBytes(32).toString('hex')
    const now = clock.now()
    const row = await store.put(
      {
        id: randomUUID(),
        email: address,
        role,
        hash: digestOf(secret),
        invited_by_user_id: inviter.id,
        created_at: now,
        expires_at: new Date(now.getTime() + invitationPolicy.lifetimeMs)
      },
      tx
    )
    return { row, secret }
  }

  async listInvitations(page: Page): Promise<Rows<InvitationRow>> {
    const { store, clock } = this.parts
    return await store.listPending(clock.now(), page)
  }

  async revokeInvitation(invitationId: string): Promise<void> {
    if (!(await this.parts.store.deletePending(invitationId))) throw problems.invitationNotFound()
  }

  async findInvitation(secret: string): ReturnType<Invitations['findInvitation']> {
    const { email, role } = await this.#findOpen(digestOf(secret))
    return { email, role }
  }

  async acceptInvitation(
    {
      secret,
      password,
      username = '',
      firstName = '',
      lastName = ''
    }: Parameters<Invitations['acceptInvitation']>[0],
    client: Client
  ): Promise<SessionGrant> {
    const { db, events, store, users, hasher, issuer, devices, clock } = this.parts
    checkPassword(password, 'password')
    const hash = digestOf(secret)
    const { email, role, invited_by_user_id: invitedByUserId } = await this.#findOpen(hash)
    const password_hash = await hasher.hash(password)
    return await db.transaction(async tx => {
      // The user before the invitation, as an admin does who makes the same user: the other order could deadlock.
      const names = { username, first_name: firstName, last_name: lastName }
      const user = await users.insert(
        { id: randomUUID(), email, role, password_hash, ...names },
        clock.now(),
        tx
      )
      if (user !== undefined && (await store.accept(hash, clock.now(), tx))) {
        await events.emit(invitationAccepted, { userId: user.id, email, role, invitedByUserId }, tx)
        return withCookies(await issuer.start(user, client, tx), devices.cookies(user.email, client))
      }
      // Accepted, revoked or late while the password was hashed: the row says which.
      await this.#findOpen(hash)
      throw problems.emailTaken({ email })
    })
  }

  /** 404 when there is none, 410 when it is over. */
  async #findOpen(hash: string): Promise<InvitationRow> {
    const { store, clock } = this.parts
    const invitation = await store.findByHash(hash)
    if (invitation === undefined) throw problems.invitationNotFound()
    if (invitation.accepted_at !== null) throw problems.invitationAccepted()
    if (invitation.expires_at <= clock.now()) throw problems.invitationExpired()
    return invitation
  }
}
