import {
  countedRows,
  type Database,
  type Page,
  type ProjectId,
  type Rows,
  type Tx,
  versionOfRows
} from 'busbar/sdk'
import type { ApplicationRow } from './schemas.js'

/** As api.ts promises: what a deploy adds to `pending_change` is empty until there has been one. */
const pendingChange = `case when last_deployed_at is null then '' when source_changed_at is not null then 'source'
  when config_changed_at is not null then 'config' else '' end as pending_change`

const columns = `id, project_id, parent_application_id, name, slug, type, status, build_type, build_type_override, builder_image,
  custom_buildpacks, source_kind, source_ref, source_repo, source_image, branch, auto_deploy_branch, dockerfile_path, root_directory, build_target, build_platform,
  git_integration_id, git_token is not null as has_git_credentials,
  registry_username, registry_password is not null as has_registry_credentials, webhook_secret is not null as has_webhook_secret,
  deploy_hook_enabled, preview_branch_pattern, preview_domain_template, container_port, start_command, cpu_limit, memory_limit, container_caps,
  readonly_rootfs, health_check_type, health_check_path, health_check_command, health_check_expect_status,
  health_check_interval_seconds, health_check_retries, health_check_start_period_seconds, health_check_timeout_seconds,
  ${pendingChange}, config_changed_at, source_changed_at, last_activity_at, last_deployed_at, created_at, updated_at`

/** The sealed secrets of an application. */
interface SealedSecrets {
  readonly git_token: string | null
  readonly webhook_secret: string | null
  readonly registry_password: string | null
}
type ApplicationRecord = ApplicationRow & { readonly container_deployment_id: string | null }

type Derived = 'has_git_credentials' | 'has_registry_credentials' | 'has_webhook_secret' | 'pending_change'
/** What a write may set. */
export type ApplicationChanges = Partial<
  Omit<ApplicationRow, Derived | 'id' | 'project_id' | 'slug' | 'created_at'> & SealedSecrets
>
export type NewApplication = ApplicationChanges &
  Pick<ApplicationRow, 'id' | 'project_id' | 'slug' | 'created_at' | 'updated_at'>

/** Another one for other rows. */
interface ListVersion {
  readonly rows: string
  /** Of the applications, with spaces between them; null for none. */
  readonly ids: string | null
}

const alive = 'where project_id = $1 and id = $2 and deleting_at is null'

export class ApplicationStore {
  readonly #get
  readonly #record
  readonly #list
  readonly #count
  readonly #version

  constructor(private readonly db: Database) {
    this.#get = db.statement<ApplicationRow, [string, string]>(
      'application-get',
      `select ${columns} from $schema.application ${alive}`
    )
    this.#record = db.statement<ApplicationRecord, [string, string]>(
      'application-record',
      `select ${columns}, container_deployment_id from $schema.application ${alive}`
    )
    const listed =
      'from $schema.application where project_id = $1 and deleting_at is null and parent_application_id is null'
    this.#list = db.statement<ApplicationRow, [string, number, number]>(
      'application-list',
      `select ${columns} ${listed} order by created_at desc, id desc limit $2 offset $3`
    )
    this.#count = db.statement<{ total: number }, [string]>(
      'application-count',
      `select count(*) as total ${listed}`
    )
    this.#version = db.statement<ListVersion, [string]>(
      'application-list-version',
      `select ${versionOfRows('application')} as rows, string_agg(id::text, ' ') as ids ${listed}`
    )
  }

  async get(projectId: ProjectId, id: string, tx?: Tx): Promise<ApplicationRow | undefined> {
    return (await this.#get([projectId, id], tx))[0]
  }

  /** As `get`, with the deployment whose container is the running one. */
  async record(projectId: ProjectId, id: string): Promise<ApplicationRecord | undefined> {
    return (await this.#record([projectId, id]))[0]
  }

  /** As `get`, with the row locked until `tx` ends. */
  async hold(projectId: ProjectId, id: string, tx: Tx): Promise<ApplicationRow | undefined> {
    const [row] = await this.db.sql<ApplicationRow>(
      `select ${columns} from $schema.application where project_id = ? and id = ? and deleting_at is null for no key update`,
      [projectId, id],
      tx
    )
    return row
  }

  async secrets(projectId: ProjectId, id: string): Promise<SealedSecrets | undefined> {
    const [row] = await this.db.sql<SealedSecrets>(
      'select git_token, webhook_secret, registry_password from $schema.application where project_id = ? and id = ? and deleting_at is null',
      [projectId, id]
    )
    return row
  }

  /** Newest first, without previews, with the count of all. */
  async list(projectId: ProjectId, page: Page): Promise<Rows<ApplicationRow>> {
    const rows = await this.#list([projectId, page.limit, page.offset])
    return await countedRows(page, rows, () => this.#count([projectId]))
  }

  /** Of all that `list` may show of a project. */
  async listVersion(projectId: ProjectId): Promise<ListVersion> {
    return (await this.#version([projectId]))[0] ?? { rows: '', ids: null }
  }

  async insert(application: NewApplication, tx: Tx): Promise<void> {
    await this.db.table<NewApplication>('application', tx).insert(application)
  }

  async update(projectId: ProjectId, id: string, changes: ApplicationChanges, tx: Tx): Promise<void> {
    await this.db
      .table('application', tx)
      .where({ project_id: projectId, id })
      .whereNull('deleting_at')
      .update(changes)
  }

  async hasPreviews(projectId: ProjectId, id: string): Promise<boolean> {
    const rows = await this.db.sql(
      'select 1 from $schema.application where project_id = ? and parent_application_id = ? and deleting_at is null limit 1',
      [projectId, id]
    )
    return rows.length > 0
  }
}
