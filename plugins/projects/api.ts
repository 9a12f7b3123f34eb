import {
  event,
  extensionPoint,
  projectRoles,
  publishedTable,
  type Reach,
  type ResourceTeardown,
  service,
  type Tx
} from 'busbar/sdk'
import type { Knex } from 'knex'

/** All projects, with those that are being deleted. Foreign keys to it are `on delete restrict`. */
export const projectTable = publishedTable('projects.project', {
  key: 'id',
  columns: {
    id: 'uuid',
    name: 'text',
    /** Unique on the instance; part of container and network names. */
    slug: 'text',
    /** The owner. */
    user_id: 'uuid',
    /** With every user of the instance, as editors. */
    shared: 'boolean',
    /** When its removal was asked for; null while it is there for users. */
    deleting_at: 'timestamptz null'
  }
})

/** What a caller may do in a project: the role in it, or `admin`, who may do there what its owner may. */
export const ownProjectRoles = [...projectRoles, 'admin'] as const
export type OwnProjectRole = (typeof ownProjectRoles)[number]

/** What other plugins may know of a project. */
export interface ProjectSummary {
  readonly id: string
  readonly name: string
  /** Unique on the instance; part of container and network names. */
  readonly slug: string
  readonly user_id: string
}

export interface ProjectDirectory {
  /**
   * Undefined when it does not exist or is being deleted. With `tx` the project cannot be marked for
   * deletion before that transaction ends: what is written in it is seen by the teardown.
   */
  find(projectId: string, tx?: Tx): Promise<ProjectSummary | undefined>
  /** All projects within a caller's reach, newest first, with what they may do there. */
  reachable(reach: Reach): Promise<ReadonlyArray<ProjectSummary & { readonly my_role: OwnProjectRole }>>
  /**
   * The ids of the users who have a role of their own in the project: its owner, and who was a member at `at` already. Empty
   * when the project does not exist or is being deleted. Neither those it is merely shared with nor admins.
   */
  usersOf(projectId: string, at: Date, tx?: Tx): Promise<readonly string[]>
  /** How many there are, without those that are being deleted. */
  count(): Promise<number>
  /** A deploy in the project has succeeded: `last_deployed_at` of the list. An older time changes nothing. */
  recordActivity(projectId: string, at: Date, tx: Tx): Promise<void>
}
export const projectDirectory = service<ProjectDirectory>('projects.directory')

/** What a plugin removes of a project that is being deleted, keyed by the plugin's id; after what it owns in the project. */
export const projectTeardown = extensionPoint<ResourceTeardown>('projects.teardown')

/** A user has been made a member of a project, or has got another role in it (`before` is the former one). */
export const memberChanged = event<{
  readonly projectId: string
  readonly project: string
  readonly userId: string
  readonly role: 'viewer' | 'editor'
  readonly before: 'viewer' | 'editor' | null
}>('projects.memberChanged')

/** The project's row is gone. */
export const projectDeleted = event<{ readonly projectId: string }>('projects.deleted')

/** Narrows a query that has joined `projectTable` as `alias` to what a caller may see. */
export function whereReachable<Q extends Knex.QueryBuilder>(query: Q, reach: Reach, alias: string): Q {
  query.whereNull(`${alias}.deleting_at`)
  if (reach.pins !== null) query.whereIn(`${alias}.id`, [...reach.pins])
  const { userId } = reach
  if (userId !== null) {
    query.where(own =>
      own
        .where(`${alias}.user_id`, userId)
        .orWhere(`${alias}.shared`, true)
        .orWhereRaw('?? in (select project_id from projects.member where user_id = ?)', [
          `${alias}.id`,
          userId
        ])
    )
  }
  return query
}

/**
 * The same as a condition of SQL, for a prepared statement: `alias` is `projectTable`; `pins` and `user` are the parameters
 * (`$1`) that hold those of the reach.
 */
export const reachableIn = (
  alias: string,
  { pins, user }: { readonly pins: string; readonly user: string }
): string =>
  `${alias}.deleting_at is null and (${pins}::uuid[] is null or ${alias}.id = any(${pins}))
    and (${user}::uuid is null or ${alias}.user_id = ${user} or ${alias}.shared
      or ${alias}.id in (select project_id from projects.member where user_id = ${user}))`
