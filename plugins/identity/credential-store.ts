import type { CallerUser, Database, FoundCredential, Role, Scope, SignedInCaller } from 'busbar/sdk'
import { mustEnroll, type TwoFactorPolicy } from './policy.js'
import { effectiveRole } from './users/effective-role.js'

interface UserColumns {
  readonly user_id: string
  readonly email: string
  readonly username: string
  readonly role: Role
}
interface SessionColumns extends UserColumns {
  readonly id: string
  readonly secret_expires_at: Date
  readonly expires_at: Date
  readonly last_used_at: Date
  readonly has_factor: boolean
}
interface TokenColumns extends UserColumns {
  readonly id: string
  readonly name: string
  readonly scope: Scope
  readonly role_at_issue: Role
  readonly pinned: boolean
  readonly project_ids: readonly string[]
  readonly expires_at: Date | null
  readonly last_used_at: Date | null
}

/** What the guard asks when it meets a credential. Every statement is prepared, by a digest or an id. */
export class CredentialStore {
  readonly #selectSession
  readonly #selectSessionById
  readonly #selectToken
  readonly #selectTokenById
  readonly #touchToken
  readonly #touchSession
  readonly #touchUser

  constructor(
    db: Database,
    private readonly twoFactor: TwoFactorPolicy = 'optional'
  ) {
    const sessions = `
      select s.id, s.secret_expires_at, s.expires_at, s.last_used_at, u.id as user_id, u.email, u.username, u.role,
        exists(select 1 from ${db.schema}.totp f where f.user_id = u.id and f.enabled_at is not null) as has_factor
      from ${db.schema}.session s join ${db.schema}.user u on u.id = s.user_id`
    this.#selectSession = db.statement<SessionColumns, [string]>(
      'session',
      `${sessions} where s.secret_hash = $1`
    )
    this.#selectSessionById = db.statement<SessionColumns, [string]>(
      'session_by_id',
      `${sessions} where s.id = $1`
    )
    const tokens = `
      select t.id, t.name, t.scope, t.role_at_issue, t.pinned, t.expires_at, t.last_used_at,
        u.id as user_id, u.email, u.username, u.role,
        array(select p.project_id::text from ${db.schema}.access_token_pin p where p.token_id = t.id) as project_ids
      from ${db.schema}.access_token t join ${db.schema}.user u on u.id = t.user_id`
    this.#selectToken = db.statement<TokenColumns, [string]>('token', `${tokens} where t.hash = $1`)
    this.#selectTokenById = db.statement<TokenColumns, [string]>('token_by_id', `${tokens} where t.id = $1`)
    this.#touchToken = db.statement<never, [string, Date, Date]>(
      'touch_token',
      `
      update ${db.schema}.access_token set last_used_at = $2
      where id = $1 and (last_used_at is null or last_used_at <= $3)`
    )
    this.#touchSession = db.statement<{ user_id: string }, [string, Date, Date]>(
      'touch_session',
      `
      update ${db.schema}.session set last_used_at = $2
      where id = $1 and last_used_at <= $3 returning user_id`
    )
    this.#touchUser = db.statement<never, [string, Date]>(
      'touch_user',
      `
      update ${db.schema}.user set last_active_at = $2 where id = $1 and last_active_at < $2`
    )
  }

  async find(kind: 'session' | 'token', digest: string): Promise<FoundCredential | undefined> {
    if (kind === 'token') {
      const [row] = await this.#selectToken([digest])
      return row === undefined ? undefined : tokenOf(row)
    }
    const [row] = await this.#selectSession([digest])
    return row === undefined ? undefined : this.#sessionOf(row, row.secret_expires_at)
  }

  async current(caller: SignedInCaller): Promise<FoundCredential | undefined> {
    if (caller.kind === 'token') {
      const [row] = await this.#selectTokenById([caller.tokenId])
      return row === undefined ? undefined : tokenOf(row)
    }
    const [row] = await this.#selectSessionById([caller.sessionId])
    return row === undefined ? undefined : this.#sessionOf(row, row.expires_at)
  }

  async used(caller: SignedInCaller, at: Date, recent: Date): Promise<void> {
    if (caller.kind === 'token') {
      await this.#touchToken([caller.tokenId, at, recent])
      return
    }
    // Two statements, not one: a password change locks the user first and then the sessions.
    const [touched] = await this.#touchSession([caller.sessionId, at, recent])
    if (touched !== undefined) await this.#touchUser([touched.user_id, at])
  }

  #sessionOf(row: SessionColumns, expiresAt: Date): FoundCredential {
    const caller: SignedInCaller = Object.freeze({
      kind: 'session',
      sessionId: row.id,
      user: userOf(row, row.role),
      ...(mustEnroll(this.twoFactor, row.role, row.has_factor) ? { mustEnroll: true } : {})
    })
    return { caller, expiresAt, lastUsedAt: row.last_used_at }
  }
}

function tokenOf(row: TokenColumns): FoundCredential {
  const caller: SignedInCaller = Object.freeze({
    kind: 'token',
    tokenId: row.id,
    tokenName: row.name,
    scope: row.scope,
    pins: row.pinned ? Object.freeze([...row.project_ids]) : null,
    user: userOf(row, effectiveRole(row.role_at_issue, row.role))
  })
  return { caller, expiresAt: row.expires_at, lastUsedAt: row.last_used_at }
}

const userOf = (row: UserColumns, role: Role): CallerUser =>
  Object.freeze({ id: row.user_id, email: row.email, username: row.username, role })
