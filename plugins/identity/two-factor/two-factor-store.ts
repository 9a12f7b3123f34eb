import type { Database, Tx } from 'busbar/sdk'

export interface TotpRow {
  readonly user_id: string
  /** Sealed. */
  readonly secret: string
  /** Null until the first code was right. */
  readonly enabled_at: Date | null
  readonly last_step: number | null
}
interface ChallengeRow {
  readonly hash: string
  readonly user_id: string
  readonly attempts: number
  readonly expires_at: Date
}

const columns = ['user_id', 'secret', 'enabled_at', 'last_step'] as const

export class TwoFactorStore {
  constructor(private readonly db: Database) {}

  async find(userId: string, tx?: Tx): Promise<TotpRow | undefined> {
    return await this.#factors(tx)
      .where({ user_id: userId })
      .first(...columns)
  }

  /** The row, locked until `tx` has ended, so that no code is spent twice. */
  async lock(userId: string, tx: Tx): Promise<TotpRow | undefined> {
    return await this.#factors(tx)
      .where({ user_id: userId })
      .forUpdate()
      .first(...columns)
  }

  async put(row: TotpRow, tx: Tx): Promise<void> {
    await this.#factors(tx).insert(row).onConflict('user_id').merge()
  }

  async delete(userId: string, tx: Tx): Promise<void> {
    await this.#factors(tx).where({ user_id: userId }).delete()
  }

  async countCodes(userId: string, tx?: Tx): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>(
      'select cast(count(*) as int) as total from $schema.recovery_code where user_id = ?',
      [userId],
      tx
    )
    return row?.total ?? 0
  }

  async replaceCodes(userId: string, hashes: readonly string[], tx: Tx): Promise<void> {
    await this.#codes(tx).where({ user_id: userId }).delete()
    await this.#codes(tx).insert(hashes.map(hash => ({ user_id: userId, hash })))
  }

  /** False when there is no such code, or no longer. */
  async spendCode(userId: string, hash: string, tx: Tx): Promise<boolean> {
    return (await this.#codes(tx).where({ user_id: userId, hash }).delete()) > 0
  }

  async insertChallenge(challenge: ChallengeRow, now: Date, tx: Tx): Promise<void> {
    await this.#challenges(tx).where({ user_id: challenge.user_id }).where('expires_at', '<=', now).delete()
    await this.#challenges(tx).insert(challenge)
  }

  async findChallenge(hash: string, now: Date): Promise<ChallengeRow | undefined> {
    return await this.#challenges()
      .where({ hash })
      .where('expires_at', '>', now)
      .first('hash', 'user_id', 'attempts', 'expires_at')
  }

  /** Counts an attempt before it is made; false when none is left. */
  async spendAttempt(hash: string, allowed: number, now: Date, tx: Tx): Promise<boolean> {
    return (
      (await this.#challenges(tx)
        .where({ hash })
        .where('attempts', '<', allowed)
        .where('expires_at', '>', now)
        .increment('attempts', 1)) > 0
    )
  }

  async deleteChallenges(userId: string, tx: Tx): Promise<void> {
    await this.#challenges(tx).where({ user_id: userId }).delete()
  }

  #factors(tx?: Tx) {
    return this.db.table<TotpRow>('totp', tx)
  }

  #codes(tx?: Tx) {
    return this.db.table<{ user_id: string; hash: string }>('recovery_code', tx)
  }

  #challenges(tx?: Tx) {
    return this.db.table<ChallengeRow>('login_challenge', tx)
  }
}
