import {
  maybe,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  statusResponse,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

const string = Type.String()
const integer = Type.Integer()

const fields = {
  id: uuid(),
  project_id: uuid(),
  parent_application_id: nullable(uuid()),
  name: string,
  slug: string,
  type: oneOf(['git', 'image']),
  status: oneOf(['inactive', 'running', 'stopped', 'error', 'unhealthy']),
  build_type: string,
  build_type_override: nullable(string),
  builder_image: nullable(string),
  custom_buildpacks: string,
  source_kind: nullable(string),
  source_ref: nullable(string),
  source_repo: nullable(string),
  source_image: nullable(string),
  branch: nullable(string),
  auto_deploy_branch: nullable(string),
  dockerfile_path: nullable(string),
  root_directory: nullable(string),
  build_target: nullable(string),
  build_platform: nullable(string),
  git_integration_id: nullable(uuid()),
  has_git_credentials: Type.Boolean(),
  registry_username: nullable(string),
  has_registry_credentials: Type.Boolean(),
  has_webhook_secret: Type.Boolean(),
  deploy_hook_enabled: Type.Boolean(),
  preview_branch_pattern: nullable(string),
  preview_domain_template: nullable(string),
  container_port: nullable(integer),
  start_command: nullable(string),
  cpu_limit: Type.Number(),
  memory_limit: integer,
  container_caps: oneOf(['minimal', 'standard']),
  readonly_rootfs: Type.Boolean(),
  health_check_type: oneOf(['none', 'http', 'command']),
  health_check_path: nullable(string),
  health_check_command: nullable(string),
  health_check_expect_status: nullable(integer),
  health_check_interval_seconds: nullable(integer),
  health_check_retries: nullable(integer),
  health_check_start_period_seconds: nullable(integer),
  health_check_timeout_seconds: nullable(integer),
  pending_change: oneOf(['', 'config', 'source']),
  config_changed_at: nullable(timestamp()),
  source_changed_at: nullable(timestamp()),
  last_activity_at: nullable(timestamp()),
  last_deployed_at: nullable(timestamp()),
  created_at: timestamp(),
  updated_at: timestamp()
}

const row = object(fields)
/** An application as it stands in the database, without what only answers have. */
export type ApplicationRow = Static<typeof row>

export const application = named('Application', object({ ...fields, direct_url: nullable(string) }))
export type ApplicationAnswer = Static<typeof application>

/** Not blank, no control characters. */
const name = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\S\\u0000-\\u001f]*[^\\s\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$'
})
const line = Type.String({ maxLength: 500, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
const port = Type.Integer({ minimum: 1, maximum: 65_535 })
const cores = Type.Number({ minimum: 0, maximum: 1024 })
const bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
/** The password may be a key file of several lines, or a token of some thousand characters. */
const registry = {
  registry_username: maybe(
    nullable(Type.String({ maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f:]*$' }))
  ),
  registry_password: maybe(nullable(text({ max: 16_384 })))
}
/** A stage of the Dockerfile, and what kind of machine the image is made for. */
const buildChoices = { build_target: maybe(nullable(line)), build_platform: maybe(nullable(line)) }
const startCommand = maybe(nullable(text({ max: 4000 })))
/** `image`, or one of the builders that are there: GET /api/builders. */
const buildType = Type.String({ minLength: 1, maxLength: 100, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })

export const createBody = named(
  'CreateApplication',
  object({
    name,
    type: oneOf(['git', 'image']),
    build_type: buildType,
    slug: maybe(Type.String({ maxLength: 100 })),
    source_repo: maybe(line),
    branch: maybe(line),
    git_token: maybe(line),
    git_integration_id: maybe(Type.String({ maxLength: 36 })),
    dockerfile_path: maybe(line),
    root_directory: maybe(line),
    ...buildChoices,
    source_image: maybe(line),
    ...registry,
    container_port: maybe(nullable(port)),
    start_command: startCommand,
    cpu_limit: maybe(cores),
    memory_limit: maybe(bytes),
    health_check_path: maybe(line)
  })
)
export type CreateBody = Static<typeof createBody>

/** `cpu_limit`, `memory_limit` and `health_check_path` are taken and ignored: they have operations of their own. */
export const updateBody = named(
  'UpdateApplication',
  object({
    name: maybe(name),
    source_repo: maybe(line),
    source_image: maybe(line),
    ...registry,
    branch: maybe(nullable(line)),
    dockerfile_path: maybe(nullable(line)),
    root_directory: maybe(nullable(line)),
    ...buildChoices,
    build_type_override: maybe(nullable(line)),
    builder_image: maybe(nullable(line)),
    custom_buildpacks: maybe(nullable(text({ max: 10_000 }))),
    git_token: maybe(nullable(line)),
    git_integration_id: maybe(nullable(Type.String({ maxLength: 36 }))),
    container_port: maybe(nullable(port)),
    start_command: startCommand,
    cpu_limit: maybe(Type.Number()),
    memory_limit: maybe(integer),
    health_check_path: maybe(nullable(string))
  })
)
export type UpdateBody = Static<typeof updateBody>

export const changeSourceBody = named(
  'ChangeApplicationSource',
  object({
    type: oneOf(['git', 'image']),
    build_type: maybe(buildType),
    source_repo: maybe(line),
    source_image: maybe(line),
    ...registry,
    start_command: startCommand,
    branch: maybe(line),
    dockerfile_path: maybe(line),
    root_directory: maybe(line),
    ...buildChoices,
    git_integration_id: maybe(Type.String({ maxLength: 36 })),
    git_token: maybe(line)
  })
)
export type ChangeSourceBody = Static<typeof changeSourceBody>

const seconds = maybe(nullable(Type.Integer({ maximum: 86_400 })))
export const healthCheckBody = named(
  'SetHealthCheck',
  object({
    type: oneOf(['none', 'http', 'command']),
    path: maybe(nullable(Type.String({ maxLength: 1000 }))),
    expect_status: maybe(nullable(integer)),
    command: maybe(nullable(text({ max: 4000 }))),
    interval_seconds: seconds,
    retries: maybe(nullable(Type.Integer({ maximum: 1000 }))),
    start_period_seconds: seconds,
    timeout_seconds: seconds
  })
)
export type HealthCheckBody = Static<typeof healthCheckBody>

export const resourcesBody = named(
  'SetResources',
  object({ cpu_limit: maybe(cores), memory_limit: maybe(bytes) })
)
export type ResourcesBody = Static<typeof resourcesBody>

export const runtimeBody = named(
  'UpdateRuntime',
  object({
    container_caps: maybe(oneOf(['minimal', 'standard'])),
    readonly_rootfs: maybe(Type.Boolean())
  })
)
export type RuntimeBody = Static<typeof runtimeBody>
export const runtimeAnswer = named(
  'ApplicationRuntime',
  object({ container_caps: string, readonly_rootfs: Type.Boolean() })
)

export const webhookBody = named(
  'UpdateWebhook',
  object({
    webhook_secret: maybe(nullable(Type.String({ maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]*$' }))),
    auto_deploy_branch: maybe(nullable(line))
  })
)
export type WebhookBody = Static<typeof webhookBody>
export const webhookSecretAnswer = named('WebhookSecret', object({ webhook_secret: string }))

export const healthAnswer = named(
  'ApplicationHealth',
  object({
    deployment_id: nullable(uuid()),
    deploy_status: nullable(string),
    status: string,
    message: nullable(string),
    checked_at: nullable(timestamp())
  })
)

export const deletedAnswer = statusResponse
