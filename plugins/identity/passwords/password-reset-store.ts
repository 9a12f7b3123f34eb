import type { Database, Tx } from 'busbar/sdk'

export interface StoredReset {
  readonly hash: string
  readonly user_id: string
  readonly created_at: Date
  readonly expires_at: Date
  readonly used_at: Date | null
  readonly replaced_at: Date | null
}

export interface PasswordResetStore {
  insert(reset: Pick<StoredReset, 'hash' | 'user_id' | 'created_at' | 'expires_at'>, tx: Tx): Promise<void>
  find(hash: string): Promise<StoredReset | undefined>
  /** How many the user was given since then. */
  countSince(userId: string, since: Date, tx: Tx): Promise<number>
  /** False when it was used, replaced or has expired meanwhile. */
  spend(hash: string, now: Date, tx: Tx): Promise<boolean>
  /** Those that still work stop working. */
  replaceAll(userId: string, now: Date, tx: Tx): Promise<void>
  deleteBefore(userId: string, before: Date, tx: Tx): Promise<void>
}

export function createPasswordResetStore (database: Database): PasswordResetStore {
  const resets = (tx?: Tx) => database.table<StoredReset>('password_reset', tx)

  return Object.freeze<PasswordResetStore>({
    async insert (reset, tx) {
      await resets(tx).insert(reset)
    },
    find: async hash => await resets().where({ hash }).first('hash', 'user_id', 'created_at', 'expires_at', 'used_at', 'replaced_at'),
    async countSince (userId, since, tx) {
      const [row] = await database.sql<{ total: number }>(
        'select cast(count(*) as int) as total from $schema.password_reset where user_id = ? and created_at > ?', [userId, since], tx)
      return row?.total ?? 0
    },
    spend: async (hash, now, tx) =>
      await resets(tx).where({ hash }).whereNull('used_at').whereNull('replaced_at').where('expires_at', '>', now).update({ used_at: now }) > 0,
    async replaceAll (userId, now, tx) {
      await resets(tx).where({ user_id: userId }).whereNull('used_at').whereNull('replaced_at').update({ replaced_at: now })
    },
    async deleteBefore (userId, before, tx) {
      await resets(tx).where({ user_id: userId }).where('expires_at', '<', before).delete()
    }
  })
}
