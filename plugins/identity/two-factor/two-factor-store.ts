import type { Database, Tx } from 'busbar/sdk'

export interface TotpRow {
  readonly user_id: string
  /** Sealed. */
  readonly secret: string
  /** Null until the first code was right. */
  readonly enabled_at: Date | null
  readonly last_step: number | null
}
export interface ChallengeRow {
  readonly hash: string
  readonly user_id: string
  readonly attempts: number
  readonly expires_at: Date
}

export interface TwoFactorStore {
  find(userId: string, tx?: Tx): Promise<TotpRow | undefined>
  /** The row, which nobody else spends a code of until `tx` has ended. */
  lock(userId: string, tx: Tx): Promise<TotpRow | undefined>
  put(row: TotpRow, tx: Tx): Promise<void>
  delete(userId: string, tx: Tx): Promise<void>

  countCodes(userId: string, tx?: Tx): Promise<number>
  replaceCodes(userId: string, hashes: readonly string[], tx: Tx): Promise<void>
  /** False when there is no such code, or no longer. */
  spendCode(userId: string, hash: string, tx: Tx): Promise<boolean>

  insertChallenge(challenge: ChallengeRow, now: Date, tx: Tx): Promise<void>
  findChallenge(hash: string, now: Date): Promise<ChallengeRow | undefined>
  /** Counts an attempt before it is made; false when none is left. */
  spendAttempt(hash: string, allowed: number, now: Date, tx: Tx): Promise<boolean>
  deleteChallenges(userId: string, tx: Tx): Promise<void>
}

export function createTwoFactorStore (database: Database): TwoFactorStore {
  const factors = (tx?: Tx) => database.table<TotpRow>('totp', tx)
  const codes = (tx?: Tx) => database.table<{ user_id: string, hash: string }>('recovery_code', tx)
  const challenges = (tx?: Tx) => database.table<ChallengeRow>('login_challenge', tx)
  const columns = ['user_id', 'secret', 'enabled_at', 'last_step'] as const

  return Object.freeze<TwoFactorStore>({
    find: async (userId, tx) => await factors(tx).where({ user_id: userId }).first(...columns),
    lock: async (userId, tx) => await factors(tx).where({ user_id: userId }).forUpdate().first(...columns),
    async put (row, tx) {
      await factors(tx).insert(row).onConflict('user_id').merge()
    },
    async delete (userId, tx) {
      await factors(tx).where({ user_id: userId }).delete()
    },

    async countCodes (userId, tx) {
      const [row] = await database.sql<{ total: number }>(
        'select cast(count(*) as int) as total from $schema.recovery_code where user_id = ?', [userId], tx)
      return row?.total ?? 0
    },
    async replaceCodes (userId, hashes, tx) {
      await codes(tx).where({ user_id: userId }).delete()
      await codes(tx).insert(hashes.map(hash => ({ user_id: userId, hash })))
    },
    spendCode: async (userId, hash, tx) => await codes(tx).where({ user_id: userId, hash }).delete() > 0,

    async insertChallenge (challenge, now, tx) {
      await challenges(tx).where({ user_id: challenge.user_id }).where('expires_at', '<=', now).delete()
      await challenges(tx).insert(challenge)
    },
    findChallenge: async (hash, now) =>
      await challenges().where({ hash }).where('expires_at', '>', now).first('hash', 'user_id', 'attempts', 'expires_at'),
    spendAttempt: async (hash, allowed, now, tx) =>
      await challenges(tx).where({ hash }).where('attempts', '<', allowed).where('expires_at', '>', now).increment('attempts', 1) > 0,
    async deleteChallenges (userId, tx) {
      await challenges(tx).where({ user_id: userId }).delete()
    }
  })
}
