import type { Database, Tx } from 'busbar/sdk'
import type { SessionRow } from '../api.js'

export interface NewSession {
  readonly id: string
  readonly user_id: string
  readonly ip_address: string
  readonly user_agent: string
}
/** The digests of a session's two secrets and until when they work. */
export interface SessionSecrets {
  readonly secret_hash: string
  readonly secret_expires_at: Date
  readonly refresh_hash: string
  readonly expires_at: Date
}

export interface SessionStore {
  insert(session: NewSession, secrets: SessionSecrets, now: Date, tx: Tx): Promise<void>
  /** Gives the session new secrets and returns whose it is; undefined when it has ended meanwhile. */
  renew(id: string, secrets: SessionSecrets, now: Date, tx: Tx): Promise<{ readonly user_id: string } | undefined>
  /** The session a refresh secret belongs to, spent or not; nobody renews or ends it until `tx` has ended. */
  holdByRefresh(hash: string, tx: Tx): Promise<string | undefined>
  /** Marks a refresh secret as spent and returns until when it works; undefined when it was spent before. */
  spend(hash: string, now: Date, tx: Tx): Promise<Date | undefined>
  /** Newest first, without those that have expired. */
  list(userId: string, now: Date): Promise<readonly SessionRow[]>
  /** False when there is no such session of this user. */
  delete(id: string, userId: string, tx: Tx): Promise<boolean>
  deleteById(id: string, tx: Tx): Promise<void>
  deleteOfUser(userId: string, tx: Tx): Promise<void>
  deleteExpired(userId: string, now: Date, tx: Tx): Promise<void>
}

interface StoredSession extends NewSession {
  readonly secret_hash: string
  readonly secret_expires_at: Date
  readonly expires_at: Date
  readonly created_at: Date
  readonly last_used_at: Date
}
interface StoredRefreshSecret {
  readonly hash: string
  readonly session_id: string
  readonly expires_at: Date
  readonly spent_at: Date | null
}

export function createSessionStore (database: Database): SessionStore {
  const sessions = (tx?: Tx) => database.table<StoredSession>('session', tx)
  const refreshSecrets = (tx?: Tx) => database.table<StoredRefreshSecret>('refresh_secret', tx)
  const addRefreshSecret = async (sessionId: string, { refresh_hash, expires_at }: SessionSecrets, tx: Tx) => {
    await refreshSecrets(tx).insert({ hash: refresh_hash, session_id: sessionId, expires_at, spent_at: null })
  }

  return Object.freeze<SessionStore>({
    async insert (session, secrets, now, tx) {
      const { secret_hash, secret_expires_at, expires_at } = secrets
      await sessions(tx).insert({ ...session, secret_hash, secret_expires_at, expires_at, created_at: now, last_used_at: now })
      await addRefreshSecret(session.id, secrets, tx)
    },
    async renew (id, secrets, now, tx) {
      const { secret_hash, secret_expires_at, expires_at } = secrets
      const [row] = await sessions(tx).where({ id })
        .update({ secret_hash, secret_expires_at, expires_at, last_used_at: now }).returning(['user_id'])
      if (row === undefined) return undefined
      // What has expired proves nothing any more, spent or not.
      await refreshSecrets(tx).where({ session_id: id }).where('expires_at', '<=', now).delete()
      await addRefreshSecret(id, secrets, tx)
      return row
    },
    // The session is locked before its secrets, as ending it does: the other order could deadlock.
    async holdByRefresh (hash, tx) {
      const [row] = await database.sql<{ id: string }>(`
        select s.id from $schema.session s join $schema.refresh_secret r on r.session_id = s.id
        where r.hash = ? for update of s`, [hash], tx)
      return row?.id
    },
    async spend (hash, now, tx) {
      const [row] = await refreshSecrets(tx).where({ hash }).whereNull('spent_at')
        .update({ spent_at: now }).returning(['expires_at'])
      return row?.expires_at
    },
    list: async (userId, now) =>
      await sessions().where({ user_id: userId }).where('expires_at', '>', now)
        .select('id', 'ip_address', 'user_agent', 'created_at', 'last_used_at', 'expires_at')
        .orderBy([{ column: 'created_at', order: 'desc' }, { column: 'id' }]),
    delete: async (id, userId, tx) => await sessions(tx).where({ id, user_id: userId }).delete() > 0,
    async deleteById (id, tx) {
      await sessions(tx).where({ id }).delete()
    },
    async deleteOfUser (userId, tx) {
      await sessions(tx).where({ user_id: userId }).delete()
    },
    async deleteExpired (userId, now, tx) {
      await sessions(tx).where({ user_id: userId }).where('expires_at', '<=', now).delete()
    }
  })
}
