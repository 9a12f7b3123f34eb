import type { Client, Identity, SessionGrant, UserRow } from 'busbar/api/identity'
import { type Reply, type RouteRequest, reply, type SessionCaller, type SignedInCaller } from 'busbar/sdk'
import { problems } from './problems.js'
import type { Acceptance, LoginAnswer, ProfileChanges } from './schemas.js'

/** The account as its owner sees it. The rules are the identity's. */
export class AccountService {
  constructor(private readonly identity: Identity) {}

  async profile(caller: SignedInCaller): Promise<UserRow> {
    const user = await this.identity.findUser(caller.user.id)
    if (user === undefined) throw problems.accountGone()
    return user
  }

  async updateProfile(caller: SessionCaller, changes: ProfileChanges): Promise<UserRow> {
    const { username, first_name: firstName, last_name: lastName } = changes
    return await this.identity.updateProfile(caller.user.id, { username, firstName, lastName })
  }

  async sessions(caller: SessionCaller) {
    const rows = await this.identity.listSessions(caller.user.id)
    return rows.map(row => ({ ...row, current: row.id === caller.sessionId }))
  }

  /** Ends one of the caller's sessions; the cookies go too when it is the one that asks. */
  async endSession(caller: SessionCaller, sessionId: string) {
    if (!(await this.identity.endSession(caller.user.id, sessionId))) throw problems.sessionNotFound()
    return reply(
      200,
      { status: 'deleted' },
      { cookies: sessionId === caller.sessionId ? await this.identity.signedOutCookies() : [] }
    )
  }

  async logOut(caller: SessionCaller) {
    await this.identity.endSession(caller.user.id, caller.sessionId)
    return reply(200, { status: 'logged out' }, { cookies: await this.identity.signedOutCookies() })
  }

  /** Without cookies while a second factor is missing. */
  async logIn(account: { email: string; password: string }, client: Client): Promise<Reply<LoginAnswer>> {
    const outcome = await this.identity.login(account, client)
    if (outcome.kind === 'signedIn') return signedIn(outcome.grant)
    return reply(200, { ...outcome.challenge, methods: [...outcome.challenge.methods] })
  }

  async accept(
    { token: secret, first_name: firstName, last_name: lastName, ...account }: Acceptance,
    client: Client
  ) {
    return signedIn(await this.identity.acceptInvitation({ ...account, secret, firstName, lastName }, client))
  }

  /** A refresh that is refused takes the cookies away, so that the browser stops trying. */
  async refresh({ headers, ...request }: Pick<RouteRequest, 'headers' | 'ip'>) {
    const grant = await this.identity.refresh(headers, clientOf({ headers, ...request }))
    if (grant !== undefined) return signedIn(grant)
    const { message, code } = problems.refreshRefused()
    return reply(401, { error: message, code }, { cookies: await this.identity.signedOutCookies() })
  }
}

/** The answer that carries a session: the body for programs, the cookies for browsers. */
export const signedIn = (grant: SessionGrant) => reply(200, grant.result, { cookies: grant.cookies })

export const clientOf = ({ ip, headers }: Pick<RouteRequest, 'ip' | 'headers'>): Client => ({
  ip,
  userAgent: headers['user-agent'],
  cookies: headers.cookie
})
