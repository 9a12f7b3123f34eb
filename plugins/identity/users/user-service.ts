import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Clock, Credentials, Database, Page, Role, Rows, Tx } from 'busbar/sdk'
import type { UserRow, Users } from '../api.js'
import type { InstanceStore } from '../instance-store.js'
import { checkPassword, type PasswordHasher } from '../passwords/password-hasher.js'
import { problems } from '../problems.js'
import type { SessionIssuer } from '../sessions/session-issuer.js'
import { checkedEmail } from './email.js'
import type { InvitationStore } from './invitation-store.js'
import type { SetupAccess } from './setup-access.js'
import type { NewUser, StoredUser, UserStore } from './user-store.js'

interface NewAccount {
  readonly email: string
  readonly password: string
  readonly username?: string
}

const instanceNameKey = 'instance_name'
/** A row elsewhere refers to this one; the second since PostgreSQL 18, where the key says RESTRICT. */
const stillReferenced: readonly unknown[] = ['23503', '23001']

interface UserServiceParts {
  readonly db: Database
  readonly store: UserStore
  readonly instance: InstanceStore
  readonly setup: SetupAccess
  readonly invitations: InvitationStore
  readonly hasher: PasswordHasher
  readonly issuer: SessionIssuer
  readonly credentials: Credentials
  readonly clock: Clock
}

/** Users, and what keeps the instance from being left without an admin. */
export class UserService implements Users {
  constructor(private readonly parts: UserServiceParts) {}

  async isSetupRequired(): Promise<boolean> {
    return await this.parts.setup.isRequired()
  }

  async isSetupCodeRequired(): Promise<boolean> {
    return this.parts.setup.isCodeRequired
  }

  async checkSetupRequest(headers: IncomingHttpHeaders): Promise<void> {
    await this.parts.setup.checkRequest(headers)
  }

  async checkSetupCode(code: string | undefined): Promise<void> {
    await this.parts.setup.checkCode(code)
  }

  async setUp({ instanceName, ...account }: Parameters<Users['setUp']>[0]): Promise<UserRow> {
    const { db, store, instance, setup } = this.parts
    if (!(await setup.isRequired())) throw problems.setupCompleted()
    const user = await this.#prepare(account, 'admin')
    return await db.transaction(async tx => {
      await store.lockAll(tx)
      if (!(await setup.isRequired(tx))) throw problems.setupCompleted()
      await setup.close(tx)
      if (instanceName !== undefined && instanceName !== '')
        await instance.set(instanceNameKey, instanceName, tx)
      return await this.#insert(user, tx)
    })
  }

  async instanceName(): Promise<string | undefined> {
    return await this.parts.instance.get(instanceNameKey)
  }

  async findUser(userId: string): Promise<UserRow | undefined> {
    const user = await this.parts.store.find(userId)
    return user === undefined ? undefined : withoutSecrets(user)
  }

  async adminIds(tx?: Tx): Promise<readonly string[]> {
    return await this.parts.store.adminIds(tx)
  }

  async listUsers(page: Page): Promise<Rows<UserRow>> {
    return await this.parts.store.list(page)
  }

  async createUser({ role, ...account }: Parameters<Users['createUser']>[0]): Promise<UserRow> {
    const { db, invitations } = this.parts
    const user = await this.#prepare(account, role)
    return await db.transaction(async tx => {
      const row = await this.#insert(user, tx)
      await invitations.deletePendingFor(row.email, tx)
      return row
    })
  }

  async updateProfile(
    userId: string,
    { username, firstName, lastName }: Parameters<Users['updateProfile']>[1]
  ): Promise<UserRow> {
    const { db, store, credentials, clock } = this.parts
    const changes = {
      ...(username !== undefined && { username }),
      ...(firstName !== undefined && { first_name: firstName }),
      ...(lastName !== undefined && { last_name: lastName })
    }
    return await db.transaction(async tx => {
      const row = await store.update(userId, changes, clock.now(), tx)
      if (row === undefined) throw problems.userNotFound()
      await credentials.forget('user', userId, tx)
      return row
    })
  }

  async changeRole(userId: string, role: Role): Promise<UserRow> {
    const { db, store, invitations, issuer, clock } = this.parts
    return await db.transaction(async tx => {
      const user =
        role === 'admin'
          ? await store.lock(userId, tx)
          : await this.#lockUnlessLastAdmin(userId, problems.lastAdminDemoted, tx)
      if (user === undefined) throw problems.userNotFound()
      if (user.role === role) return withoutSecrets(user)
      const row = await store.update(userId, { role }, clock.now(), tx)
      if (row === undefined) throw problems.userNotFound()
      await issuer.endAll(userId, tx, 'role')
      // What an admin has begun to give does not outlive being one.
      await invitations.deletePendingFrom(userId, tx)
      return row
    })
  }

  async deleteUser(userId: string, actingUserId: string): Promise<void> {
    const { db, store, credentials } = this.parts
    if (userId === actingUserId) throw problems.ownAccount()
    try {
      await db.transaction(async tx => {
        await this.#lockUnlessLastAdmin(userId, problems.lastAdminDeleted, tx)
        await store.delete(userId, tx)
        await credentials.forget('user', userId, tx)
      })
    } catch (error) {
      if (isStillReferenced(error)) throw problems.userOwns()
      throw error
    }
  }

  async #prepare({ email, password, username = '' }: NewAccount, role: Role): Promise<NewUser> {
    const address = checkedEmail(email)
    checkPassword(password, 'password')
    return {
      id: randomUUID(),
      email: address,
      username,
      role,
      password_hash: await this.parts.hasher.hash(password)
    }
  }

  async #insert(user: NewUser, tx?: Tx): Promise<UserRow> {
    const { store, clock } = this.parts
    const row = await store.insert(user, clock.now(), tx)
    if (row === undefined) throw problems.emailTaken({ email: user.email }, { field: 'email' })
    return row
  }

  /** The user, locked; 400 when what is about to happen would leave the instance without an admin. */
  async #lockUnlessLastAdmin(
    userId: string,
    lastAdmin: typeof problems.lastAdminDeleted,
    tx: Tx
  ): Promise<StoredUser> {
    const { store } = this.parts
    // All admins are held, in one order: two who demote each other at the same time must not both succeed.
    const admins = await store.holdAdmins(tx)
    if (admins.length === 1 && admins[0] === userId) throw lastAdmin()
    const user = await store.lock(userId, tx)
    if (user === undefined) throw problems.userNotFound()
    return user
  }
}

const isStillReferenced = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && stillReferenced.includes(error.code)

const withoutSecrets = ({ password_hash: _, ...row }: StoredUser): UserRow => row
