import type { AccessTokenRow, Identity } from 'busbar/api/identity'
import type { ProjectDirectory } from 'busbar/api/projects'
import { isProblem, type Operations, type Page, type ProjectId, type SessionCaller } from 'busbar/sdk'
import { problems } from './problems.js'
import type { NewToken } from './schemas.js'
import { reachOfToken } from './token-reach.js'
import { readExpiry, readName, readScope } from './token-rules.js'

interface TokenServiceParts {
  readonly identity: Identity
  readonly projects: ProjectDirectory
  readonly operations: Operations
}

/** As the guard checks a project of the path. */
type RequireProject = (projectId: string) => Promise<ProjectId>

/** Tokens of the caller's own; another user's can be neither seen nor revoked. */
export class TokenService {
  constructor(private readonly parts: TokenServiceParts) {}

  async list(caller: SessionCaller, page: Page) {
    const { rows, total } = await this.parts.identity.listTokens(caller.user.id, page)
    return { rows: rows.map(toWire), total }
  }

  async create(caller: SessionCaller, wanted: NewToken, requireProject: RequireProject) {
    const name = readName(wanted.name)
    const scope = readScope(wanted.scopes)
    const expiresInDays = readExpiry(wanted.expires_in_days)
    const projectIds = await reachable(wanted.project_ids ?? [], requireProject)
    const { row, value } = await this.parts.identity.createToken(caller, {
      name,
      scope,
      expiresInDays,
      projectIds
    })
    return { ...toWire(row), token: value }
  }

  /** What a token could do now, and when it last did. */
  async reach(caller: SessionCaller, tokenId: string) {
    const { identity, projects, operations } = this.parts
    const token = await identity.inspectToken(caller.user.id, tokenId)
    if (token === undefined) throw problems.notFound()
    const { pins, user } = token.caller
    const reach = { callerId: user.id, userId: user.role === 'admin' ? null : user.id, pins }
    const { row } = token
    return {
      ...toWire(row),
      role: user.role,
      ...reachOfToken({
        projects: token.isExpired ? [] : await projects.reachable(reach),
        operations: token.isExpired ? [] : operations.admitting(token.caller),
        uses: token.uses
      })
    }
  }

  async delete(caller: SessionCaller, tokenId: string) {
    if (!(await this.parts.identity.deleteToken(caller.user.id, tokenId))) throw problems.notFound()
    return { status: 'deleted' }
  }
}

const toWire = (row: AccessTokenRow) => ({
  ...row,
  scopes: [...row.scopes],
  project_ids: [...row.project_ids]
})

async function reachable(
  projectIds: readonly string[],
  requireProject: RequireProject
): Promise<readonly string[]> {
  const distinct = [...new Set(projectIds)]
  await Promise.all(
    distinct.map(async projectId => {
      try {
        await requireProject(projectId)
      } catch (error) {
        // In a body the id is a value like others: a bad one is 400, not 404.
        throw isProblem(error) && error.status < 500 ? problems.projectUnreachable({ projectId }) : error
      }
    })
  )
  return distinct
}
