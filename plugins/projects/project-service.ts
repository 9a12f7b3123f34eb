import { randomUUID } from 'node:crypto'
import type { Identity } from 'busbar/api/identity'
import type {
  Clock,
  Database,
  Events,
  Page,
  Problem,
  ProjectFactsCache,
  ProjectId,
  Reach,
  Resources,
  Rows,
  Tx
} from 'busbar/sdk'
import { projectDeleted } from './api.js'
import type { MemberStore } from './member-store.js'
import { problems } from './problems.js'
import type { ProjectChanges, ProjectStore } from './project-store.js'
import type { ProjectListRow, ProjectRow } from './schemas.js'

interface ProjectServiceParts {
  readonly store: ProjectStore
  readonly members: MemberStore
  readonly db: Database
  readonly events: Events
  readonly resources: Resources
  readonly clock: Clock
  readonly identity: Identity
  readonly facts: ProjectFactsCache
}

/** The rules about projects. Who may do what has been decided by the kernel before. */
export class ProjectService {
  constructor(private readonly parts: ProjectServiceParts) {}

  async list(reach: Reach, page: Page): Promise<Rows<ProjectListRow>> {
    const { rows, total } = await this.parts.store.list(reach, page)
    return { rows: rows.map(withoutUnset), total }
  }

  async listVersion(reach: Reach): Promise<string | undefined> {
    return await this.parts.store.listVersion(reach)
  }

  async get(projectId: ProjectId, reach: Reach): Promise<ProjectRow> {
    return (await this.parts.store.get(projectId, reach)) ?? missing(projectId)
  }

  async create(userId: string, { name, slug }: { name: string; slug: string }): Promise<ProjectRow> {
    const { store, clock, db } = this.parts
    const id = randomUUID()
    return await db.transaction(async tx => {
      const row = await store
        .insert({ id, name, slug, userId }, clock.now(), tx)
        .catch(whenUserIsGone(problems.ownerGone))
      if (row === undefined) throw problems.slugTaken({ slug })
      return row
    })
  }

  async rename(projectId: ProjectId, { name }: { name?: string }, reach: Reach): Promise<ProjectRow> {
    return name === undefined
      ? await this.get(projectId, reach)
      : await this.parts.db.transaction(async tx => await this.#update(projectId, { name }, reach, tx))
  }

  async share(projectId: ProjectId, { shared }: { shared: boolean }, reach: Reach): Promise<ProjectRow> {
    return await this.#write(projectId, async tx => await this.#update(projectId, { shared }, reach, tx))
  }

  /** The former owner keeps no access; a membership of the new owner is removed. */
  async transfer(
    projectId: ProjectId,
    { user_id: userId }: { user_id: string },
    reach: Reach
  ): Promise<ProjectRow> {
    const { identity, members } = this.parts
    if ((await identity.findUser(userId)) === undefined) throw problems.noSuchUser({ userId })
    // Deleted since the look-up: the foreign key refuses the row.
    return await this.#write(projectId, async tx => {
      const row = await this.#update(projectId, { user_id: userId }, reach, tx)
      await members.remove(projectId, userId, tx)
      return row
    }).catch(whenUserIsGone(() => problems.noSuchUser({ userId })))
  }

  /** Why a user cannot be deleted, in a sentence; undefined when no project stands in the way. */
  async refuseRemovalOf(userId: string): Promise<string | undefined> {
    return describeOwned(await this.parts.store.countOf(userId))
  }

  /** Invisible from now on; the kernel takes everything apart. */
  async delete(projectId: ProjectId): Promise<{ status: string }> {
    const { identity, resources } = this.parts
    await this.#write(projectId, async tx => {
      if (!(await resources.remove({ kind: 'project', id: projectId }, tx))) missing(projectId)
      await identity.removePins(projectId, tx)
    })
    return { status: 'deleted' }
  }

  /** Its row is gone, with `tx`. */
  async recordDeleted(projectId: string, tx: Tx): Promise<void> {
    const { events, facts } = this.parts
    await events.emit(projectDeleted, { projectId }, tx)
    await facts.invalidate(projectId, tx)
  }

  async #update(projectId: ProjectId, changes: ProjectChanges, asker: Reach, tx: Tx): Promise<ProjectRow> {
    const { store, clock } = this.parts
    return (await store.update(projectId, changes, { now: clock.now(), asker }, tx)) ?? missing(projectId)
  }

  /** A write of what the guard goes by: the kernel forgets what it remembers of the project, once it has committed. */
  async #write<T>(projectId: string, run: (tx: Tx) => Promise<T>): Promise<T> {
    const { db, facts } = this.parts
    return await db.transaction(async tx => {
      const result = await run(tx)
      await facts.invalidate(projectId, tx)
      return result
    })
  }
}

/** A project that is being deleted keeps its owner until its clean-up is done. */
export function describeOwned({
  owned,
  deleting
}: {
  readonly owned: number
  readonly deleting: number
}): string | undefined {
  if (owned === 1) return 'this user still owns 1 project: transfer or delete it first'
  if (owned > 1) return `this user still owns ${owned} projects: transfer or delete them first`
  return deleting === 0
    ? undefined
    : `the clean-up of ${deleting} deleted ${deleting === 1 ? 'project' : 'projects'} of this user is not done yet: try again later`
}

/** A user who is deleted at the same moment can own nothing any more. */
const whenUserIsGone =
  (problem: () => Problem) =>
  (error: unknown): never => {
    throw typeof error === 'object' && error !== null && 'code' in error && error.code === '23503'
      ? problem()
      : error
  }

function missing(projectId: string): never {
  throw problems.notFound({ projectId })
}

const withoutUnset = ({ last_deployed_at: at, ...row }: ProjectListRow): ProjectListRow =>
  at === null || at === undefined ? row : { ...row, last_deployed_at: at }
