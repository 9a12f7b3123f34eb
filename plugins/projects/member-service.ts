import type { Clock, Database, Events, ProjectFactsCache, ProjectId } from 'busbar/sdk'
import { memberChanged } from './api.js'
import type { MemberStore } from './member-store.js'
import { problems } from './problems.js'
import type { MemberRole, MemberRow } from './schemas.js'

/** The guard remembers the members of every project that is in use. */
const mostMembers = 200

interface MemberServiceParts {
  readonly members: MemberStore
  readonly db: Database
  readonly events: Events
  readonly clock: Clock
  readonly facts: ProjectFactsCache
}

/** Who beside the owner has been let in to a project, and as what. */
export class MemberService {
  constructor(private readonly parts: MemberServiceParts) {}

  async list(projectId: ProjectId): Promise<MemberRow[]> {
    return await this.parts.members.list(projectId)
  }

  async usersOf(...[projectId, at, tx]: Parameters<MemberStore['usersOf']>): Promise<readonly string[]> {
    return await this.parts.members.usersOf(projectId, at, tx)
  }

  /** An admin may be made a member too, and is one when they are no admin any more. */
  async put(
    projectId: ProjectId,
    wanted: { readonly email: string; readonly role: MemberRole }
  ): Promise<MemberRow> {
    const { members, db, events, clock, facts } = this.parts
    const { role } = wanted
    return await db.transaction(async tx => {
      const project = await members.hold(projectId, tx)
      if (project === undefined) throw problems.notFound({ projectId })
      const user = await members.findUser(wanted.email.trim().toLowerCase(), tx)
      if (user === undefined) throw problems.noSuchAddress()
      if (user.id === project.user_id) throw problems.ownsIt()
      if ((await members.countOthers(projectId, user.id, tx)) >= mostMembers)
        throw problems.tooMany({ most: mostMembers })
      const row = await members.put({ projectId, userId: user.id, role }, clock.now(), tx)
      if (row === undefined) throw new Error('a member was written and is not there')
      const { before, ...member } = row
      if (before !== role)
        await events.emit(
          memberChanged,
          { projectId, project: project.name, userId: user.id, role, before },
          tx
        )
      await facts.invalidate(projectId, tx)
      return { user_id: user.id, email: user.email, username: user.username, ...member }
    })
  }

  /** Nothing changes for who is no member. */
  async remove(projectId: ProjectId, userId: string): Promise<{ status: string }> {
    const { members, db, facts } = this.parts
    await db.transaction(async tx => {
      const project = await members.hold(projectId, tx)
      if (project === undefined) throw problems.notFound({ projectId })
      if (userId === project.user_id) throw problems.ownsIt()
      await members.remove(projectId, userId, tx)
      await facts.invalidate(projectId, tx)
    })
    return { status: 'removed' }
  }
}
