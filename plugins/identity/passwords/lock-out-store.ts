import type { Database } from 'busbar/sdk'

export interface Attempts { readonly attempts: number, readonly ends_at: Date }

export interface LockOutStore {
  /** Counts one more attempt and returns how many there are. The one that is the last allowed starts the window anew. */
  add(account: string, address: string, now: Date, windowEnd: Date, allowed: number): Promise<Attempts>
  /** Takes one back. */
  remove(account: string, address: string): Promise<void>
  clear(account: string, address: string): Promise<void>
}

export function createLockOutStore (database: Database): LockOutStore {
  const rows = () => database.table<{ account: string, address: string } & Attempts>('lock_out')
  return Object.freeze<LockOutStore>({
    async add (account, address, now, windowEnd, allowed) {
      await rows().where('ends_at', '<=', now).delete()
      const [row] = await database.sql<Attempts>(`
        insert into $schema.lock_out as l (account, address, attempts, ends_at)
        values (:account, :address, 1, :windowEnd)
        on conflict (account, address) do update set
          attempts = case when l.ends_at <= :now then 1 else least(l.attempts + 1, 1000000) end,
          ends_at = case when l.ends_at <= :now or l.attempts + 1 = :allowed then excluded.ends_at else l.ends_at end
        returning attempts, ends_at`, { account, address, now, windowEnd, allowed })
      return row ?? { attempts: 1, ends_at: windowEnd }
    },
    async remove (account, address) {
      await rows().where({ account, address }).where('attempts', '>', 0).decrement('attempts', 1)
    },
    async clear (account, address) {
      await rows().where({ account, address }).delete()
    }
  })
}
