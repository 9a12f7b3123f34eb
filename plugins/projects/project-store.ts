import {
  countedRows,
  type Database,
  type Page,
  type ProjectFacts,
  type ProjectId,
  type Reach,
  type Rows,
  type Tx,
  versionOfRows
} from 'busbar/sdk'
import { type ProjectSummary, reachableIn } from './api.js'
import type { ProjectListRow, ProjectRow } from './schemas.js'

const columns = 'id, name, slug, user_id, server_id, shared, created_at, updated_at'
/** Of a caller. `user` is the same, and null for an admin. */
const roleOf = (caller: string, user: string, schema = '$schema'): string => `
  case when user_id = ${caller} then 'owner' when ${user} is null then 'admin' when shared then 'editor'
  else (select role from ${schema}.member where project_id = project.id and user_id = ${user}) end as my_role`

/** Whose role in a project is told. */
type Asker = Pick<Reach, 'callerId' | 'userId'>

interface NewProject {
  readonly id: string
  readonly name: string
  readonly slug: string
  readonly userId: string
}

/** What of a project can be changed. */
export type ProjectChanges = Partial<Pick<ProjectRow, 'name' | 'shared' | 'user_id'>>

export class ProjectStore {
  readonly #get
  readonly #facts
  readonly #find
  readonly #findAndHold
  readonly #list
  readonly #count
  readonly #version

  constructor(private readonly db: Database) {
    const project = `${db.schema}.project`
    const seen = (caller: string, user: string) => `${columns}, ${roleOf(caller, user, db.schema)}`
    this.#get = db.statement<ProjectRow, [string, Asker['callerId'], Asker['userId']]>(
      'project-get',
      `select ${seen('$2::uuid', '$3::uuid')} from ${project} where id = $1 and deleting_at is null`
    )
    this.#facts = db.statement<ProjectFacts, [string]>(
      'project-facts',
      `select id, user_id as "ownerId", shared, deleting_at is not null as deleting,
        coalesce((select json_object_agg(user_id, role) from ${db.schema}.member where project_id = $1), '{}') as members
      from ${project} where id = $1`
    )
    const summary = `select id, name, slug, user_id from ${project} where id = $1 and deleting_at is null`
    this.#find = db.statement<ProjectSummary, [string]>('project-find', summary)
    // Marking for deletion updates the row: a share lock makes it wait, and lets other writers share.
    this.#findAndHold = db.statement<ProjectSummary, [string]>('project-hold', `${summary} for share`)
    const reachable = `from ${project} where ${reachableIn('project', { pins: '$1', user: '$2' })}`
    this.#list = db.statement<
      ProjectListRow,
      [Reach['pins'], Asker['userId'], number, number, Asker['callerId']]
    >(
      'project-list',
      `select ${seen('$5::uuid', '$2::uuid')}, last_deployed_at ${reachable} order by created_at desc, id desc limit $3 offset $4`
    )
    this.#count = db.statement<{ total: number }, [Reach['pins'], Reach['userId']]>(
      'project-count',
      `select count(*) as total ${reachable}`
    )
    // With the caller's role, which is in another table.
    this.#version = db.statement<{ version: string }, [Reach['pins'], Asker['userId'], Asker['callerId']]>(
      'project-list-version',
      `select ${versionOfRows('project', 'my_role')} as version from (
        select ctid, xmin, ${roleOf('$3::uuid', '$2::uuid', db.schema)} ${reachable}) project`
    )
  }

  async get(projectId: ProjectId, { callerId, userId }: Asker): Promise<ProjectRow | undefined> {
    return (await this.#get([projectId, callerId, userId]))[0]
  }

  async facts(projectId: string): Promise<ProjectFacts | undefined> {
    return (await this.#facts([projectId]))[0]
  }

  async find(projectId: string, tx?: Tx): Promise<ProjectSummary | undefined> {
    return (await (tx === undefined ? this.#find([projectId]) : this.#findAndHold([projectId], tx)))[0]
  }

  /** Newest first, with the count of all that the caller may see. */
  async list(reach: Reach, page: Page): Promise<Rows<ProjectListRow>> {
    const rows = await this.#list([reach.pins, reach.userId, page.limit, page.offset, reach.callerId])
    return await countedRows(page, rows, () => this.#count([reach.pins, reach.userId]))
  }

  /** Of the instance. */
  async count(): Promise<number> {
    return (await this.#count([null, null]))[0]?.total ?? 0
  }

  /** Of all that `list` may show to who reaches so far. */
  async listVersion({ pins, userId, callerId }: Reach): Promise<string | undefined> {
    return (await this.#version([pins, userId, callerId]))[0]?.version
  }

  /** How many projects a user owns, those that are being deleted apart. */
  async countOf(userId: string): Promise<{ readonly owned: number; readonly deleting: number }> {
    const [row] = await this.db.sql<{ owned: number; deleting: number }>(
      `
      select cast(count(*) filter (where deleting_at is null) as int) as owned,
        cast(count(*) filter (where deleting_at is not null) as int) as deleting
      from $schema.project where user_id = ?`,
      [userId]
    )
    return row ?? { owned: 0, deleting: 0 }
  }

  /** Undefined when the slug is taken. */
  async insert(project: NewProject, now: Date, tx: Tx): Promise<ProjectRow | undefined> {
    const [row] = await this.db.sql<ProjectRow>(
      `
      insert into $schema.project (id, name, slug, user_id, created_at, updated_at)
      values (:id, :name, :slug, :userId, :now, :now)
      on conflict (slug) do nothing returning ${columns}, 'owner' as my_role`,
      { ...project, now },
      tx
    )
    return row
  }

  async update(
    projectId: ProjectId,
    changes: ProjectChanges,
    { now, asker }: { readonly now: Date; readonly asker: Asker },
    tx: Tx
  ): Promise<ProjectRow | undefined> {
    const { name = null, shared = null, user_id: userId = null } = changes
    const [row] = await this.db.sql<ProjectRow>(
      `
      update $schema.project set name = coalesce(:name, name), shared = coalesce(:shared, shared),
        user_id = coalesce(:userId, user_id), updated_at = :now
      where id = :projectId and deleting_at is null returning ${columns}, ${roleOf('cast(:caller as uuid)', 'cast(:user as uuid)')}`,
      { projectId, name, shared, userId, now, caller: asker.callerId, user: asker.userId },
      tx
    )
    return row
  }

  async recordActivity(projectId: string, at: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.project set last_deployed_at = greatest(last_deployed_at, ?) where id = ?',
      [at, projectId],
      tx
    )
  }
}
