import type { Client, Identity, ListRange } from 'busbar/api/identity'
import { Problem, type Contributions, type SessionCaller } from 'busbar/sdk'
import type { UserRemovalCheck } from './api.js'
import type { InvitationService } from './invitation-service.js'
import type { NewUser } from './schemas.js'

/** Users as an admin manages them. The rules about accounts are the identity's. */
export class UserService {
  constructor (
    readonly identity: Identity,
    readonly removal: Contributions<UserRemovalCheck>,
    readonly invitations: InvitationService
  ) {}

  list = async (range: ListRange) => await this.identity.listUsers(range)

  create = async ({ role = 'member', ...account }: NewUser) => await this.identity.createUser({ ...account, role })

  changeRole = async (userId: string, role: 'member' | 'admin') => await this.identity.changeRole(userId, role)

  async delete (caller: SessionCaller, userId: string) {
    const reasons = await Promise.all(this.removal.entries().map(async ({ value }) => await value.refusal(userId)))
    const reason = reasons.find(sentence => sentence !== undefined)
    // Not for oneself: that answer is the identity's.
    if (reason !== undefined && userId !== caller.user.id) throw new Problem(409, 'E_USER_IN_USE', reason)
    await this.identity.deleteUser(userId, caller.user.id)
    return { status: 'deleted' }
  }

  async resetPassword (caller: SessionCaller, userId: string, body: { password: string, current_password: string }, client: Client) {
    await this.identity.resetPassword(caller, userId, { currentPassword: body.current_password, newPassword: body.password }, client)
    return { status: 'password updated' }
  }

  async resetTotp (caller: SessionCaller, userId: string, body: { current_password: string, code?: string, method?: string }, client: Client) {
    const { current_password: password, ...proof } = body
    await this.identity.resetTotp(caller, userId, { ...proof, password }, client)
    return { status: 'reset' }
  }
}
