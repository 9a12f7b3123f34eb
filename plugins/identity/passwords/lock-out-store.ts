import type { Database, Tx } from 'busbar/sdk'

interface Attempts {
  readonly attempts: number
  readonly ends_at: Date
}

export class LockOutStore {
  constructor(private readonly db: Database) {}

  /** Counts one more attempt and returns how many there are. The one that is the last allowed starts the window anew. */
  async add(
    account: string,
    address: string,
    now: Date,
    windowEnd: Date,
    allowed: number
  ): Promise<Attempts> {
    await this.#rows().where('ends_at', '<=', now).delete()
    const [row] = await this.db.sql<Attempts>(
      `
        insert into $schema.lock_out as l (account, address, attempts, ends_at)
        values (:account, :address, 1, :windowEnd)
        on conflict (account, address) do update set
          attempts = case when l.ends_at <= :now then 1 else least(l.attempts + 1, 1000000) end,
          ends_at = case when l.ends_at <= :now or l.attempts + 1 = :allowed then excluded.ends_at else l.ends_at end
        returning attempts, ends_at`,
      { account, address, now, windowEnd, allowed }
    )
    return row ?? { attempts: 1, ends_at: windowEnd }
  }

  /** Takes one back. */
  async remove(account: string, address: string): Promise<void> {
    // What holds no failure is no row: attempts of anonymous callers that end in an error must not fill the table.
    await this.db.sql(
      `
        with last as (delete from $schema.lock_out where account = :account and address = :address and attempts <= 1 returning 1)
        update $schema.lock_out set attempts = attempts - 1 where account = :account and address = :address and attempts > 1`,
      { account, address }
    )
  }

  async clear(account: string, address: string): Promise<void> {
    await this.#rows().where({ account, address }).delete()
  }

  async clearAll(account: string): Promise<void> {
    await this.#rows().where({ account }).delete()
  }

  async find(account: string, address: string, now: Date, tx: Tx): Promise<Attempts | undefined> {
    return await this.#rows(tx)
      .where({ account, address })
      .where('ends_at', '>', now)
      .first('attempts', 'ends_at')
  }

  #rows(tx?: Tx) {
    return this.db.table<{ account: string; address: string } & Attempts>('lock_out', tx)
  }
}
