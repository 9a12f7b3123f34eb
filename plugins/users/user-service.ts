import type { Client, Identity } from 'busbar/api/identity'
import { askRefusal, type Contributions, type Page, type SessionCaller } from 'busbar/sdk'
import type { UserRemovalCheck } from './api.js'
import { problems } from './problems.js'
import type { NewUser } from './schemas.js'

const removalLimitMs = 20_000

/** Users as an admin manages them. The rules about accounts are the identity's. */
export class UserService {
  constructor(
    private readonly identity: Identity,
    private readonly removal: Contributions<UserRemovalCheck>
  ) {}

  async list(page: Page) {
    return await this.identity.listUsers(page)
  }

  async create({ role = 'member', ...account }: NewUser) {
    return await this.identity.createUser({ ...account, role })
  }

  async changeRole(userId: string, role: 'member' | 'admin') {
    return await this.identity.changeRole(userId, role)
  }

  async delete(caller: SessionCaller, userId: string) {
    const reasons = await Promise.all(
      this.removal.entries().map(
        async ({ value, plugin }) =>
          await askRefusal(() => value.refusal(userId), {
            ms: removalLimitMs,
            what: `the removal check of the plugin "${plugin}"`
          })
      )
    )
    const reason = reasons.find(sentence => sentence !== null)
    // Not for oneself: that answer is the identity's.
    if (reason !== undefined && reason !== null && userId !== caller.user.id) throw problems.inUse({ reason })
    await this.identity.deleteUser(userId, caller.user.id)
    return { status: 'deleted' }
  }

  async resetPassword(
    caller: SessionCaller,
    userId: string,
    body: { password: string; current_password: string },
    client: Client
  ) {
    await this.identity.resetPassword(
      caller,
      userId,
      { currentPassword: body.current_password, newPassword: body.password },
      client
    )
    return { status: 'password updated' }
  }

  async resetTotp(
    caller: SessionCaller,
    userId: string,
    body: { current_password: string; code?: string; method?: string },
    client: Client
  ) {
    const { current_password: password, ...proof } = body
    await this.identity.resetTotp(caller, userId, { ...proof, password }, client)
    return { status: 'reset' }
  }
}
