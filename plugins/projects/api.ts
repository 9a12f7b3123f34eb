import {
  bounded,
  type Contributions,
  type DormantPlugins,
  type ExtensionPoint,
  event,
  extensionPoint,
  type ProjectRole,
  publishedTable,
  type Reach,
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
  reachable(reach: Reach): Promise<ReadonlyArray<ProjectSummary & { readonly my_role: ProjectRole }>>
  /** A deploy in the project has succeeded: `last_deployed_at` of the list. An older time changes nothing. */
  recordActivity(projectId: string, at: Date, tx: Tx): Promise<void>
}
export const projectDirectory = service<ProjectDirectory>('projects.directory')

/**
 * Removes what a plugin keeps of a project that is being deleted: containers, rows, files. Keyed by the
 * plugin's id; run in reverse dependency order by a durable job, so it is idempotent and may run again.
 * Throwing is the way to say "not yet": the project's row stays, and all steps run again later.
 */
export interface ProjectTeardown {
  teardown(projectId: string, context: { readonly signal: AbortSignal }): Promise<void>
}
export const projectTeardown = extensionPoint<ProjectTeardown>('projects.teardown')

/** How long one step of a teardown may take; the removal tries again later. */
const teardownLimitMs = 5 * 60_000

/**
 * Runs the steps of a teardown, dependants first. A step that fails does not keep the others from their
 * work (what they remove may be what it waits for); the first failure is thrown at the end.
 */
export async function runTeardown(
  steps: Contributions<ProjectTeardown>,
  id: string,
  signal: AbortSignal
): Promise<void> {
  const failures: unknown[] = []
  // Contributions come in start order: what depends on others was started after them.
  for (const { value, plugin } of [...steps.entries()].reverse()) {
    signal.throwIfAborted()
    try {
      await bounded(() => value.teardown(id, { signal }), {
        ms: teardownLimitMs,
        signal,
        what: `the teardown of the plugin "${plugin}"`
      })
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

/**
 * The table whose rows still refer to the one a statement tried to delete (PostgreSQL 23503, and 23001
 * since 18), or null for any other error. In a teardown it means: a plugin that is off still holds something, so wait.
 */
export function tableHolding(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null
  if (error.code !== '23503' && error.code !== '23001') return null
  const part = (name: 'schema' | 'table') =>
    name in error ? String((error as Record<string, unknown>)[name]) : '?'
  return `${part('schema')}.${part('table')}`
}

/** What helps where a table holds rows of what is being removed, in words for the log: `x_notes.note` is of the plugin "notes". */
export function heldRemedy(table: string): string {
  const plugin = (table.split('.')[0] ?? '').replace(/^x_/, '').replaceAll('_', '-')
  return `enable the plugin "${plugin}", or, when its code is gone or nobody needs it, remove what it has stored: POST /api/plugins/${plugin}/purge (with "dry_run": true to see it first)`
}

/**
 * Runs `remove`. Where rows of a plugin that is off keep it from its end, that plugin is started for its
 * step of the teardown alone, and `remove` runs again.
 */
export async function removeWithDormant(
  dormant: DormantPlugins,
  step: {
    readonly point: ExtensionPoint<ProjectTeardown>
    readonly id: string
    readonly signal: AbortSignal
  },
  remove: () => Promise<void>
): Promise<void> {
  const asked = new Set<string>()
  for (;;) {
    try {
      return await remove()
    } catch (error) {
      const schema = tableHolding(error)?.split('.')[0]
      if (schema === undefined || asked.has(schema)) throw error
      asked.add(schema)
      const isAsked = await dormant.borrow(step.point, schema, async plugin => {
        await bounded(() => plugin.teardown(step.id, { signal: step.signal }), {
          ms: teardownLimitMs,
          signal: step.signal,
          what: `the teardown of the plugin that owns ${schema}`
        })
      })
      if (!isAsked) throw error
    }
  }
}

/** How long a teardown waits before its next round: 5 s, doubling, to 5 minutes. */
export const teardownDelayMs = (round: number): number =>
  Math.min(5_000 * 2 ** Math.min(round, 16), 5 * 60_000)

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
