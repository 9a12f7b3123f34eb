import type { Database, Tx } from 'busbar/sdk'

interface StoredReset {
  readonly hash: string
  readonly user_id: string
  readonly created_at: Date
  readonly expires_at: Date
  readonly used_at: Date | null
  readonly replaced_at: Date | null
}

export class PasswordResetStore {
  constructor(private readonly db: Database) {}

  async insert(
    reset: Pick<StoredReset, 'hash' | 'user_id' | 'created_at' | 'expires_at'>,
    tx: Tx
  ): Promise<void> {
    await this.#resets(tx).insert(reset)
  }

  async find(hash: string): Promise<StoredReset | undefined> {
    return await this.#resets()
      .where({ hash })
      .first('hash', 'user_id', 'created_at', 'expires_at', 'used_at', 'replaced_at')
  }

  /** How many the user was given since then. */
  async countSince(userId: string, since: Date, tx: Tx): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>(
      'select cast(count(*) as int) as total from $schema.password_reset where user_id = ? and created_at > ?',
      [userId, since],
      tx
    )
    return row?.total ?? 0
  }

  /** False when it was used, replaced or has expired meanwhile. */
  async spend(hash: string, now: Date, tx: Tx): Promise<boolean> {
    return (
      (await this.#resets(tx)
        .where({ hash })
        .whereNull('used_at')
        .whereNull('replaced_at')
        .where('expires_at', '>', now)
        .update({ used_at: now })) > 0
    )
  }

  /** Those that still work stop working. */
  async replaceAll(userId: string, now: Date, tx: Tx): Promise<void> {
    await this.#resets(tx)
      .where({ user_id: userId })
      .whereNull('used_at')
      .whereNull('replaced_at')
      .update({ replaced_at: now })
  }

  async deleteBefore(userId: string, before: Date, tx: Tx): Promise<void> {
    await this.#resets(tx).where({ user_id: userId }).where('expires_at', '<', before).delete()
  }

  #resets(tx?: Tx) {
    return this.db.table<StoredReset>('password_reset', tx)
  }
}
