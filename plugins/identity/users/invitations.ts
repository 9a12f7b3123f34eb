import { randomBytes, randomUUID } from 'node:crypto'
import type { Clock, Database } from 'busbar/sdk'
import type { InvitationRow, Invitations } from '../api.js'
import { digestOf } from '../digest.js'
import { checkedEmail } from './email.js'
import type { InvitationStore } from './invitation-store.js'
import { checkPassword, type PasswordHasher } from '../passwords/password-hasher.js'
import { invitationPolicy } from '../policy.js'
import { problems } from '../problems.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import type { UserStore } from './user-store.js'

export function createInvitations (parts: {
  readonly database: Database
  readonly store: InvitationStore
  readonly users: UserStore
  readonly hasher: PasswordHasher
  readonly issuer: SessionIssuer
  readonly clock: Clock
}): Invitations {
  const { database, store, users, hasher, issuer, clock } = parts

  /** 404 when there is none, 410 when it is over. */
  async function findOpen (hash: string): Promise<InvitationRow> {
    const invitation = await store.findByHash(hash)
    if (invitation === undefined) throw problems.invitationNotFound()
    if (invitation.accepted_at !== null) throw problems.invitationAccepted()
    if (invitation.expires_at <= clock.now()) throw problems.invitationExpired()
    return invitation
  }

  return {
    async invite (caller, { email, role }, tx) {
      const address = checkedEmail(email)
      // From the row, not from the session: what a demotion that runs now takes away must not be given on.
      const inviter = await users.hold(caller.user.id, tx)
      if (inviter?.role !== 'admin') throw problems.sessionEnded()
      if (await users.findByEmail(address, tx) !== undefined) throw problems.emailTaken({ email: address })
      const secret = randomBytes(32).toString('hex')
      const now = clock.now()
      const row = await store.put({
        id: randomUUID(), email: address, role, hash: digestOf(secret), invited_by_user_id: inviter.id,
        created_at: now, expires_at: new Date(now.getTime() + invitationPolicy.lifetimeMs)
      }, tx)
      return { row, secret }
    },

    async listInvitations (range) {
      const now = clock.now()
      const [rows, total] = await Promise.all([store.listPending(now, range), store.countPending(now)])
      return { rows, total }
    },

    async revokeInvitation (invitationId) {
      if (!await store.deletePending(invitationId)) throw problems.invitationNotFound()
    },

    async findInvitation (secret) {
      const { email, role } = await findOpen(digestOf(secret))
      return { email, role }
    },

    async acceptInvitation ({ secret, password, username = '', firstName = '', lastName = '' }, client) {
      checkPassword(password)
      const hash = digestOf(secret)
      const { email, role } = await findOpen(hash)
      const password_hash = await hasher.hash(password)
      return await database.transaction(async tx => {
        // The user before the invitation, as an admin does who makes the same user: the other order could deadlock.
        const names = { username, first_name: firstName, last_name: lastName }
        const user = await users.insert({ id: randomUUID(), email, role, password_hash, ...names }, clock.now(), tx)
        if (user !== undefined && await store.accept(hash, clock.now(), tx)) return await issuer.start(user, client, tx)
        // Accepted, revoked or late while the password was hashed: the row says which.
        await findOpen(hash)
        throw problems.emailTaken({ email })
      })
    }
  }
}
