import type { Database, Tx } from 'busbar/sdk'
import type { SessionRow } from '../api.js'

interface NewSession {
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

export class SessionStore {
  constructor(private readonly db: Database) {}

  async insert(session: NewSession, secrets: SessionSecrets, now: Date, tx: Tx): Promise<void> {
    const { secret_hash, secret_expires_at, expires_at } = secrets
    await this.#sessions(tx).insert({
      ...session,
      secret_hash,
      secret_expires_at,
      expires_at,
      created_at: now,
      last_used_at: now
    })
    await this.#addRefreshSecret(session.id, secrets, tx)
  }

  /** Gives the session new secrets and returns whose it is; undefined when it has ended meanwhile. */
  async renew(
    id: string,
    secrets: SessionSecrets,
    now: Date,
    tx: Tx
  ): Promise<{ readonly user_id: string } | undefined> {
    const { secret_hash, secret_expires_at, expires_at } = secrets
    const [row] = await this.#sessions(tx)
      .where({ id })
      .update({ secret_hash, secret_expires_at, expires_at, last_used_at: now })
      .returning(['user_id'])
    if (row === undefined) return undefined
    // What has expired proves nothing any more, spent or not.
    await this.#refreshSecrets(tx).where({ session_id: id }).where('expires_at', '<=', now).delete()
    await this.#addRefreshSecret(id, secrets, tx)
    return row
  }

  /** The session a refresh secret belongs to, spent or not; locked until `tx` has ended. */
  async holdByRefresh(hash: string, tx: Tx): Promise<string | undefined> {
    // The session is locked before its secrets, as ending it does: the other order could deadlock.
    const [row] = await this.db.sql<{ id: string }>(
      `
        select s.id from $schema.session s join $schema.refresh_secret r on r.session_id = s.id
        where r.hash = ? for update of s`,
      [hash],
      tx
    )
    return row?.id
  }

  /** Marks a refresh secret as spent and returns until when it works; undefined when it was spent before. */
  async spend(hash: string, now: Date, tx: Tx): Promise<Date | undefined> {
    const [row] = await this.#refreshSecrets(tx)
      .where({ hash })
      .whereNull('spent_at')
      .update({ spent_at: now })
      .returning(['expires_at'])
    return row?.expires_at
  }

  /** Newest first, without those that have expired. */
  async list(userId: string, now: Date): Promise<readonly SessionRow[]> {
    return await this.#sessions()
      .where({ user_id: userId })
      .where('expires_at', '>', now)
      .select('id', 'ip_address', 'user_agent', 'created_at', 'last_used_at', 'expires_at')
      .orderBy([{ column: 'created_at', order: 'desc' }, { column: 'id' }])
  }

  /** From where the user has signed in, as long as those sessions are kept. */
  async addresses(userId: string, tx: Tx): Promise<readonly string[]> {
    const rows = await this.#sessions(tx).where({ user_id: userId }).distinct('ip_address')
    return rows.map(({ ip_address: address }) => address)
  }

  /** False when there is no such session of this user. */
  async delete(id: string, userId: string, tx: Tx): Promise<boolean> {
    return (await this.#sessions(tx).where({ id, user_id: userId }).delete()) > 0
  }

  async deleteById(id: string, tx: Tx): Promise<void> {
    await this.#sessions(tx).where({ id }).delete()
  }

  async deleteOfUser(userId: string, tx: Tx): Promise<void> {
    await this.#sessions(tx).where({ user_id: userId }).delete()
  }

  async deleteExpired(userId: string, now: Date, tx: Tx): Promise<void> {
    await this.#sessions(tx).where({ user_id: userId }).where('expires_at', '<=', now).delete()
  }

  async #addRefreshSecret(
    sessionId: string,
    { refresh_hash, expires_at }: SessionSecrets,
    tx: Tx
  ): Promise<void> {
    await this.#refreshSecrets(tx).insert({
      hash: refresh_hash,
      session_id: sessionId,
      expires_at,
      spent_at: null
    })
  }

  #sessions(tx?: Tx) {
    return this.db.table<StoredSession>('session', tx)
  }

  #refreshSecrets(tx?: Tx) {
    return this.db.table<StoredRefreshSecret>('refresh_secret', tx)
  }
}
