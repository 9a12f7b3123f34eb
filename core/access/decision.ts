import {
  type Access,
  type ProjectFacts,
  type ProjectRole,
  type Scope,
  type SignedInCaller,
  scopes
} from 'busbar/sdk'
import { helpfulRefusal, type Refusal, refusal } from '../auth/refusal.js'

export const unauthorized = refusal(
  401,
  'E_UNAUTHORIZED',
  'unauthorized',
  'sign in by POST /api/auth/login and send its cookies, or send a token as Authorization: Bearer'
)
export const invalidCredential = refusal(
  401,
  'E_TOKEN_INVALID',
  'invalid or expired token',
  'refresh the session or sign in again, or make a new token'
)
const sessionOnly = refusal(
  403,
  'E_SESSION_REQUIRED',
  'this action requires a session, not a personal access token',
  'sign in by POST /api/auth/login, and leave the header Authorization out'
)
const adminsOnly = refusal(403, 'E_FORBIDDEN', 'forbidden: only users with the role admin may do this')
const ownersOnly = refusal(
  403,
  'E_FORBIDDEN',
  'forbidden: only the owner of the project and users with the role admin may do this'
)
const secondFactorMissing = helpfulRefusal(
  403,
  'E_SECOND_FACTOR_REQUIRED',
  'this platform asks for two-factor authentication',
  'set it up for your account first'
)
const outsidePins = refusal(
  403,
  'E_PROJECT_PINNED',
  'token is pinned to a different project',
  'use a token that is pinned to this one, or to none'
)
const viewerOnly = helpfulRefusal(
  403,
  'E_PROJECT_VIEWER',
  'you are a viewer of this project and may only read',
  'ask its owner to make you an editor'
)
export const notFound = refusal(404, 'E_NOT_FOUND', 'not found')

const rank: Readonly<Record<Scope, number>> = Object.fromEntries(
  scopes.map((scope, index) => [scope, index])
) as Record<Scope, number>
const shortOf = Object.fromEntries(
  scopes.map(scope => [
    scope,
    refusal(
      403,
      'E_SCOPE',
      `token lacks required scope: ${scope}`,
      `use a token with the scope ${scope}${scope === 'write' ? '' : ' or a wider one'}`
    )
  ])
) as Record<Scope, Refusal>

/** What can be decided from the caller and the declaration alone: session-only, then scope, then a second factor that is missing, then role. */
export function decideCaller(caller: SignedInCaller, access: Access): Refusal | null {
  if (access.kind === 'public') return null
  if (caller.kind === 'token') {
    if (access.kind === 'session') return sessionOnly
    if (rank[caller.scope] < rank[access.scope]) return shortOf[access.scope]
  } else if (caller.mustEnroll === true && access.whileEnrolling !== true) return secondFactorMissing
  if (access.role === 'admin' && caller.user.role !== 'admin') return adminsOnly
  if (access.project === 'never-pinned' && caller.kind === 'token' && caller.pins !== null) return outsidePins
  return null
}

/** Pins are looked at before existence, so that the answer for a project outside them tells nothing. */
export function decidePins(caller: SignedInCaller, projectId: string): Refusal | null {
  return caller.kind === 'token' && caller.pins !== null && !caller.pins.includes(projectId)
    ? outsidePins
    : null
}

/** Whether the caller sees the project at all, and whether their role there is as wide as the operation needs. */
export function decideProject(
  { user }: SignedInCaller,
  facts: ProjectFacts | undefined,
  needed: ProjectRole
): Refusal | null {
  if (facts === undefined || facts.deleting) return notFound
  if (facts.ownerId === user.id || user.role === 'admin') return null
  const role = facts.shared ? 'editor' : facts.members[user.id]
  if (role === undefined) return notFound
  if (needed === 'owner') return ownersOnly
  return needed === 'editor' && role === 'viewer' ? viewerOnly : null
}
