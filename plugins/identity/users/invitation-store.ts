import { countedRows, type Database, type Page, type Role, type Rows, type Tx } from 'busbar/sdk'
import type { InvitationRow } from '../api.js'

interface NewInvitation {
  readonly id: string
  readonly email: string
  readonly role: Role
  readonly hash: string
  readonly invited_by_user_id: string
  readonly created_at: Date
  readonly expires_at: Date
}

const columns = [
  'id',
  'email',
  'role',
  'invited_by_user_id',
  'expires_at',
  'accepted_at',
  'created_at'
] as const

export class InvitationStore {
  constructor(private readonly db: Database) {}

  /** One that waits for the same address is replaced: its link stops working. */
  async put(invitation: NewInvitation, tx: Tx): Promise<InvitationRow> {
    const [row] = await this.db.sql<InvitationRow>(
      `
        insert into $schema.invitation (id, email, role, hash, invited_by_user_id, created_at, expires_at)
        values (:id, :email, :role, :hash, :invited_by_user_id, :created_at, :expires_at)
        on conflict (email) where accepted_at is null do update set
          id = excluded.id, role = excluded.role, hash = excluded.hash, invited_by_user_id = excluded.invited_by_user_id,
          created_at = excluded.created_at, expires_at = excluded.expires_at
        returning ${columns.join(', ')}`,
      { ...invitation },
      tx
    )
    if (row === undefined) throw new Error('an invitation was written and is not there')
    return row
  }

  /** Newest first, those that can still be accepted, with the count of all of them. */
  async listPending(now: Date, page: Page): Promise<Rows<InvitationRow>> {
    const rows: readonly InvitationRow[] = await this.#pending(now)
      .select(...columns)
      .orderBy([{ column: 'created_at', order: 'desc' }, { column: 'id' }])
      .limit(page.limit)
      .offset(page.offset)
    return await countedRows(page, rows, () =>
      this.db.sql(
        'select count(*) as total from $schema.invitation where accepted_at is null and expires_at > ?',
        [now]
      )
    )
  }

  async findByHash(hash: string): Promise<InvitationRow | undefined> {
    return await this.#invitations()
      .where({ hash })
      .first(...columns)
  }

  /** False when it has been accepted, revoked or has expired meanwhile. */
  async accept(hash: string, now: Date, tx: Tx): Promise<boolean> {
    return (
      (await this.#invitations(tx)
        .where({ hash })
        .whereNull('accepted_at')
        .where('expires_at', '>', now)
        .update({ accepted_at: now })) > 0
    )
  }

  /** False when there is none that waits. */
  async deletePending(id: string): Promise<boolean> {
    return (await this.#invitations().where({ id }).whereNull('accepted_at').delete()) > 0
  }

  async deletePendingFrom(inviterId: string, tx: Tx): Promise<void> {
    await this.#invitations(tx).where({ invited_by_user_id: inviterId }).whereNull('accepted_at').delete()
  }

  async deletePendingFor(email: string, tx: Tx): Promise<void> {
    await this.#invitations(tx).where({ email }).whereNull('accepted_at').delete()
  }

  #invitations(tx?: Tx) {
    return this.db.table<NewInvitation & InvitationRow>('invitation', tx)
  }

  #pending(now: Date) {
    return this.#invitations().whereNull('accepted_at').where('expires_at', '>', now)
  }
}
