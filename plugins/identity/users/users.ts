import { randomUUID } from 'node:crypto'
import type { Clock, Credentials, Database, Role, Tx } from 'busbar/sdk'
import type { UserRow, Users } from '../api.js'
import { checkedEmail } from './email.js'
import type { InvitationStore } from './invitation-store.js'
import type { InstanceStore } from '../instance-store.js'
import { checkPassword, type PasswordHasher } from '../passwords/password-hasher.js'
import { problems } from '../problems.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import type { StoredUser, UserStore } from './user-store.js'

interface NewAccount { readonly email: string, readonly password: string, readonly username?: string }

const instanceNameKey = 'instance_name'
/** A row elsewhere refers to this one; the second since PostgreSQL 18, where the key says RESTRICT. */
const stillReferenced: readonly unknown[] = ['23503', '23001']

export function createUsers (parts: {
  readonly database: Database
  readonly store: UserStore
  readonly instance: InstanceStore
  readonly invitations: InvitationStore
  readonly hasher: PasswordHasher
  readonly issuer: SessionIssuer
  readonly credentials: Credentials
  readonly clock: Clock
}): Users {
  const { database, store, instance, invitations, hasher, issuer, credentials, clock } = parts

  async function prepare ({ email, password, username = '' }: NewAccount, role: Role) {
    const address = checkedEmail(email)
    checkPassword(password)
    return { id: randomUUID(), email: address, username, role, password_hash: await hasher.hash(password) }
  }

  async function insert (user: Awaited<ReturnType<typeof prepare>>, tx?: Tx): Promise<UserRow> {
    const row = await store.insert(user, clock.now(), tx)
    if (row === undefined) throw problems.emailTaken({ email: user.email })
    return row
  }

  /** The user, locked; 400 when what is about to happen would leave the instance without an admin. */
  async function lockUnlessLastAdmin (userId: string, lastAdmin: typeof problems.lastAdminDeleted, tx: Tx): Promise<StoredUser> {
    // All admins are held, in one order: two who demote each other at the same time must not both succeed.
    const admins = await store.holdAdmins(tx)
    if (admins.length === 1 && admins[0] === userId) throw lastAdmin()
    const user = await store.lock(userId, tx)
    if (user === undefined) throw problems.userNotFound()
    return user
  }

  return {
    isSetupRequired: async () => await store.isEmpty(),

    async setUp ({ instanceName, ...account }) {
      if (!await store.isEmpty()) throw problems.setupCompleted()
      const user = await prepare(account, 'admin')
      return await database.transaction(async tx => {
        await store.lockAll(tx)
        if (!await store.isEmpty(tx)) throw problems.setupCompleted()
        if (instanceName !== undefined && instanceName !== '') await instance.set(instanceNameKey, instanceName, tx)
        return await insert(user, tx)
      })
    },

    instanceName: async () => await instance.get(instanceNameKey),

    async findUser (userId) {
      const user = await store.find(userId)
      return user === undefined ? undefined : withoutSecrets(user)
    },

    async listUsers (range) {
      const [rows, total] = await Promise.all([store.list(range), store.count()])
      return { rows, total }
    },

    async createUser ({ role, ...account }) {
      const user = await prepare(account, role)
      return await database.transaction(async tx => {
        const row = await insert(user, tx)
        await invitations.deletePendingFor(row.email, tx)
        return row
      })
    },

    async updateProfile (userId, { username, firstName, lastName }) {
      const changes = {
        ...(username !== undefined && { username }),
        ...(firstName !== undefined && { first_name: firstName }),
        ...(lastName !== undefined && { last_name: lastName })
      }
      return await database.transaction(async tx => {
        const row = await store.update(userId, changes, clock.now(), tx)
        if (row === undefined) throw problems.userNotFound()
        await credentials.forget('user', userId, tx)
        return row
      })
    },

    changeRole: async (userId, role) => await database.transaction(async tx => {
      const user = role === 'admin'
        ? await store.lock(userId, tx)
        : await lockUnlessLastAdmin(userId, problems.lastAdminDemoted, tx)
      if (user === undefined) throw problems.userNotFound()
      if (user.role === role) return withoutSecrets(user)
      const row = await store.update(userId, { role }, clock.now(), tx)
      if (row === undefined) throw problems.userNotFound()
      await issuer.endAll(userId, tx)
      // What an admin has begun to give does not outlive being one.
      await invitations.deletePendingFrom(userId, tx)
      return row
    }),

    async deleteUser (userId, actingUserId) {
      if (userId === actingUserId) throw problems.ownAccount()
      try {
        await database.transaction(async tx => {
          await lockUnlessLastAdmin(userId, problems.lastAdminDeleted, tx)
          await store.delete(userId, tx)
          await credentials.forget('user', userId, tx)
        })
      } catch (error) {
        if (isStillReferenced(error)) throw problems.userOwns()
        throw error
      }
    }
  }
}

const isStillReferenced = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && stillReferenced.includes(error.code)

const withoutSecrets = ({ password_hash: _, ...row }: StoredUser): UserRow => row
