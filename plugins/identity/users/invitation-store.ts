import type { Database, Role, Tx } from 'busbar/sdk'
import type { InvitationRow, ListRange } from '../api.js'

export interface NewInvitation {
  readonly id: string
  readonly email: string
  readonly role: Role
  readonly hash: string
  readonly invited_by_user_id: string
  readonly created_at: Date
  readonly expires_at: Date
}

export interface InvitationStore {
  /** One that waits for the same address is replaced: its link stops working. */
  put(invitation: NewInvitation, tx: Tx): Promise<InvitationRow>
  /** Newest first, those that can still be accepted. */
  listPending(now: Date, range: ListRange): Promise<readonly InvitationRow[]>
  countPending(now: Date): Promise<number>
  findByHash(hash: string): Promise<InvitationRow | undefined>
  /** False when it has been accepted, revoked or has expired meanwhile. */
  accept(hash: string, now: Date, tx: Tx): Promise<boolean>
  /** False when there is none that waits. */
  deletePending(id: string): Promise<boolean>
  deletePendingFrom(inviterId: string, tx: Tx): Promise<void>
  deletePendingFor(email: string, tx: Tx): Promise<void>
}

const columns = ['id', 'email', 'role', 'invited_by_user_id', 'expires_at', 'accepted_at', 'created_at'] as const

export function createInvitationStore (database: Database): InvitationStore {
  const invitations = (tx?: Tx) => database.table<NewInvitation & InvitationRow>('invitation', tx)
  const pending = (now: Date) => invitations().whereNull('accepted_at').where('expires_at', '>', now)

  return Object.freeze<InvitationStore>({
    async put (invitation, tx) {
      const [row] = await database.sql<InvitationRow>(`
        insert into $schema.invitation (id, email, role, hash, invited_by_user_id, created_at, expires_at)
        values (:id, :email, :role, :hash, :invited_by_user_id, :created_at, :expires_at)
        on conflict (email) where accepted_at is null do update set
          id = excluded.id, role = excluded.role, hash = excluded.hash, invited_by_user_id = excluded.invited_by_user_id,
          created_at = excluded.created_at, expires_at = excluded.expires_at
        returning ${columns.join(', ')}`, { ...invitation }, tx)
      if (row === undefined) throw new Error('an invitation was written and is not there')
      return row
    },
    listPending: async (now, { limit, offset }) => await pending(now).select(...columns)
      .orderBy([{ column: 'created_at', order: 'desc' }, { column: 'id' }]).limit(limit).offset(offset),
    async countPending (now) {
      const [row] = await database.sql<{ total: number }>(
        'select cast(count(*) as int) as total from $schema.invitation where accepted_at is null and expires_at > ?', [now])
      return row?.total ?? 0
    },
    findByHash: async hash => await invitations().where({ hash }).first(...columns),
    accept: async (hash, now, tx) =>
      await invitations(tx).where({ hash }).whereNull('accepted_at').where('expires_at', '>', now).update({ accepted_at: now }) > 0,
    deletePending: async id => await invitations().where({ id }).whereNull('accepted_at').delete() > 0,
    async deletePendingFrom (inviterId, tx) {
      await invitations(tx).where({ invited_by_user_id: inviterId }).whereNull('accepted_at').delete()
    },
    async deletePendingFor (email, tx) {
      await invitations(tx).where({ email }).whereNull('accepted_at').delete()
    }
  })
}
