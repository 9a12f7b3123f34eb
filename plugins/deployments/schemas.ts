import {
  maybe,
  named,
  nullable,
  object,
  oneOf,
  pagingQuery,
  type Static,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

const string = Type.String()
const integer = Type.Integer()

export const deployment = named(
  'Deployment',
  object({
    id: uuid(),
    application_id: uuid(),
    status: oneOf(['pending', 'building', 'deploying', 'success', 'failed']),
    triggered_by: oneOf(['push', 'manual', 'api', 'rollback', 'reload', 'rebuild', 'template', 'hook']),
    image_tag: nullable(string),
    commit_sha: nullable(string),
    commit_message: nullable(string),
    commit_author: nullable(string),
    build_logs: nullable(string),
    error_message: nullable(string),
    started_at: nullable(timestamp()),
    build_started_at: nullable(timestamp()),
    build_ended_at: nullable(timestamp()),
    deploy_started_at: nullable(timestamp()),
    finished_at: nullable(timestamp()),
    idempotency_key: nullable(string),
    health_status: nullable(string),
    health_message: nullable(string),
    health_checked_at: nullable(timestamp()),
    kind: oneOf(['deploy', 'build', 'reload', 'rebuild', 'rollback']),
    step: nullable(string),
    waiting_for: nullable(string),
    remedy: nullable(string),
    evidence: nullable(string),
    container_port: nullable(integer),
    switch_served: nullable(integer),
    switch_failed: nullable(integer),
    switch_longest_gap_ms: nullable(integer),
    switch_cut: nullable(integer),
    drain_ms: nullable(integer),
    old_version_killed: nullable(Type.Boolean()),
    build_engine: nullable(Type.String())
  })
)
/** A deployment as it goes over the wire. */
export type Deployment = Static<typeof deployment>

/** A step of a build, as the engine names it. */
export const buildStep = named(
  'BuildStep',
  object({
    number: integer,
    name: string,
    state: oneOf(['running', 'done', 'cached', 'failed', 'cancelled']),
    started_at: timestamp(),
    ended_at: nullable(timestamp())
  })
)
export type BuildStepRow = Static<typeof buildStep>

export const globalDeployment = named(
  'GlobalDeployment',
  object({
    id: uuid(),
    application_id: uuid(),
    application_name: string,
    application_slug: string,
    project_id: uuid(),
    project_name: string,
    status: string,
    triggered_by: string,
    image_tag: nullable(string),
    commit_sha: nullable(string),
    commit_message: nullable(string),
    commit_author: nullable(string),
    build_logs: nullable(string),
    error_message: nullable(string),
    started_at: nullable(timestamp()),
    finished_at: nullable(timestamp())
  })
)
export type GlobalDeployment = Static<typeof globalDeployment>

export const globalQuery = object({
  ...pagingQuery,
  application_id: maybe(string),
  project_id: maybe(string),
  status: maybe(string),
  search: maybe(string),
  from: maybe(string),
  to: maybe(string)
})
export type GlobalQuery = Static<typeof globalQuery>

export const rollbackBody = named('RollBack', object({ deployment_id: uuid() }))

export const hookEnabled = named('DeployHookStatus', object({ enabled: Type.Boolean() }))
export const deployHook = named(
  'DeployHook',
  object({ enabled: Type.Boolean(), path: maybe(string), token: maybe(string) })
)
export const hookCalled = named('DeployHookCall', object({ status: string }))
export const hookParams = { token: string }
