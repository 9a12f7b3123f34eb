import {
  described,
  maybe,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  Type,
  timestamp,
  uuid,
  withValues
} from 'busbar/sdk'
import { rolloutSteps } from './api.js'

const string = Type.String()
const integer = Type.Integer()

const time = nullable(timestamp())
const count = nullable(integer)
const commonFields = {
  id: described(uuid(), 'What the deployment is called in paths and other bodies.'),
  application_id: described(uuid(), 'The application that it is of.')
}
const imageTag = described(
  nullable(string),
  'The image that it made or used, as the engine calls it; null until there is one.'
)
const commitFields = {
  commit_sha: described(
    nullable(string),
    'The full name of the commit that was built; null until it is known, and for images.'
  ),
  commit_message: described(nullable(string), 'The first line of its message; null where there is none.'),
  commit_author: described(nullable(string), 'Who wrote it; null where that is not known.')
}
const healthStatuses = ['passing', 'failing', 'skipped'] as const
const statuses = ['pending', 'building', 'deploying', 'success', 'failed'] as const
const triggers = ['push', 'manual', 'api', 'rollback', 'reload', 'rebuild', 'template', 'hook'] as const
const status =
  'How far it is: `pending` waits, `building` makes or pulls the image, `deploying` starts and proves the new version; `success` and `failed` are the end.'
const triggeredBy =
  'What asked for it: `manual` a session, `api` a token, `push` a push, `hook` a deploy hook; `rollback`, `reload`, `rebuild` and `template` are what they are called.'
const errorMessage = described(nullable(string), 'Why it failed, in a sentence; null unless it has.')
const startedAt = described(time, 'When it was asked for.')
const finishedAt = described(time, 'When it ended; null until then.')

export const deployment = named(
  'Deployment',
  object({
    ...commonFields,
    status: described(oneOf(statuses), status),
    triggered_by: described(oneOf(triggers), triggeredBy),
    image_tag: imageTag,
    ...commitFields,
    build_logs: described(
      nullable(string),
      'The log: a line for each entry, which is JSON (`ts`, `level`, `stream`, `msg`). Of one deployment all of it, at most 1 MiB with a note of what was cut; in the list of an application the end of it, at most 16 KiB, of the newest 20; null elsewhere.'
    ),
    error_message: errorMessage,
    started_at: startedAt,
    build_started_at: described(time, 'When building or pulling began; null until then.'),
    build_ended_at: described(time, 'When building or pulling ended; null until then.'),
    deploy_started_at: described(time, 'When the new container began to be made; null until then.'),
    finished_at: finishedAt,
    idempotency_key: described(
      nullable(string),
      'The `Idempotency-Key` of the request that asked for it; null without one.'
    ),
    health_status: described(
      nullable(oneOf(healthStatuses)),
      'What the health check said: `passing`, `failing`, or `skipped` where nothing is checked; null before the first time.'
    ),
    health_message: described(nullable(string), 'Why, in a sentence; null when there is nothing to say.'),
    health_checked_at: described(time, 'When it was last checked; null before the first time.'),
    kind: described(
      oneOf(['deploy', 'build', 'reload', 'rebuild', 'rollback']),
      'What it does: `deploy` builds or pulls and deploys, `build` only builds, `reload` deploys the latest image again, `rebuild` builds the latest commit again, `rollback` deploys an earlier image.'
    ),
    step: described(
      nullable(oneOf(rolloutSteps)),
      'The step of the rollout at which it is, or at which it failed; null before the first. One that succeeded stays at `record`.'
    ),
    waiting_for: described(
      nullable(string),
      'What a `pending` one waits for, in a sentence, such as memory for its build; null when it does not wait.'
    ),
    remedy: described(
      nullable(string),
      'What helps against the failure, in a sentence; null where that is not known.'
    ),
    evidence: described(
      nullable(string),
      'What was seen of the failure, such as the last output of the container; null where there is none.'
    ),
    container_port: described(
      count,
      'The TCP port that the new version was proven and is asked on; null until it is known.'
    ),
    switch_served: described(
      count,
      'How many requests were answered while the old and the new version were there; null until it is told, about two seconds after the success.'
    ),
    switch_failed: described(count, 'How many of those failed for the switch.'),
    switch_longest_gap_ms: described(
      count,
      'The longest time, in milliseconds, in which none could be answered.'
    ),
    switch_cut: described(count, 'How many were still open when the old version was stopped, and were cut.'),
    drain_ms: described(
      count,
      'How long, in milliseconds, requests under way on the old version were waited for.'
    ),
    old_version_killed: described(
      nullable(Type.Boolean()),
      'Whether the old version did not end within its 30 seconds and was killed; null until it has ended.'
    ),
    build_engine: described(
      nullable(Type.String()),
      'What carried the build out: `classic`, the Docker Engine of the platform, or the kind of a build engine (`buildkit`, `dockerd`, or one of another plugin); null where nothing was built.'
    )
  }),
  { description: 'An attempt to bring an application to a version.' }
)
/** A deployment as it goes over the wire. */
export type Deployment = Static<typeof deployment>

/** A step of a build, as the engine names it. */
export const buildStep = named(
  'BuildStep',
  object({
    number: described(integer, 'Its place in the build, from 1.'),
    name: described(string, 'What the engine calls it: `RUN npm ci`.'),
    state: described(
      oneOf(['running', 'done', 'cached', 'failed', 'cancelled']),
      'What became of it; `cached` was taken from an earlier build.'
    ),
    started_at: described(timestamp(), 'When it began.'),
    ended_at: described(time, 'When it ended; null until then.')
  }),
  { description: 'A step of a build.' }
)
/** A line of a build's log, as it is kept and told. */
export const buildLogEntry = named(
  'BuildLogEntry',
  object({
    ts: described(timestamp(), 'When it was written.'),
    level: described(oneOf(['debug', 'info', 'warning', 'error']), 'How grave it is.'),
    stream: maybe(
      described(
        oneOf(['stdout', 'stderr']),
        'Where the program wrote it; left out of the lines of the platform itself.'
      )
    ),
    msg: described(string, 'The line, without its end. Secrets are left out, and what is too long is cut.')
  }),
  { description: 'A line of the log of a build.' }
)
export type BuildStepRow = Static<typeof buildStep>

export const globalDeployment = named(
  'GlobalDeployment',
  object({
    ...commonFields,
    application_name: described(string, 'What people call the application.'),
    application_slug: described(string, 'The slug of the application.'),
    project_id: described(uuid(), 'The project that it lies in.'),
    project_name: described(string, 'What people call the project.'),
    status: described(oneOf(statuses), status),
    triggered_by: described(oneOf(triggers), triggeredBy),
    image_tag: imageTag,
    ...commitFields,
    build_logs: described(nullable(string), 'Always null here: the deployment itself has its log.'),
    error_message: errorMessage,
    started_at: startedAt,
    finished_at: finishedAt
  }),
  { description: 'A deployment in the list of those of all projects.' }
)
export type GlobalDeployment = Static<typeof globalDeployment>

const textLike = (example: string) => maybe(Type.String({ examples: [example] }))
/** Filters of all deployments. */
export const globalQuery = {
  application_id: described(
    maybe(string),
    'Only those of the application with this `id`, which you must be able to see.'
  ),
  project_id: described(
    maybe(string),
    'Only those of the project with this `id`, which you must be able to see.'
  ),
  status: described(
    maybe(withValues(string, statuses)),
    'Only those with this `status`; of one that does not exist there are none.'
  ),
  search: described(
    textLike('checkout'),
    'Only those with this text, in whatever case, in the name or message of the commit or the name of the application.'
  ),
  from: described(
    textLike('2026-01-31T12:00:00Z'),
    'Only those that were asked for at this time or later, RFC 3339.'
  ),
  to: described(
    textLike('2026-02-01T00:00:00Z'),
    'Only those that were asked for before this time, RFC 3339.'
  )
}
export type GlobalQuery = Readonly<Partial<Record<keyof typeof globalQuery, string>>>

export const rollbackBody = named(
  'RollBack',
  object({
    deployment_id: described(
      uuid(),
      'The `id` of the deployment to go back to: of this application, successful, and with an image that is still there.'
    )
  }),
  {
    description: 'Where to go back to.',
    examples: [{ deployment_id: '5b0c8a52-1d5e-4b1e-8a64-1f0f3b1c9d11' }]
  }
)

const enabled = described(Type.Boolean(), 'Whether there is a URL that deploys without a credential.')
export const hookEnabled = named('DeployHookStatus', object({ enabled }), {
  description: 'Whether an application has a deploy hook.'
})
export const deployHook = named(
  'DeployHook',
  object({
    enabled,
    path: described(
      maybe(string),
      'The path to POST to, token included: whoever knows it deploys. Left out for a caller with a token.'
    ),
    token: described(maybe(string), 'The token in that path. Left out for a caller with a token.')
  }),
  { description: 'The deploy hook of an application.' }
)
export const hookCalled = named(
  'DeployHookCall',
  object({
    status: described(
      oneOf(['queued', 'in_progress']),
      '`queued`: a deployment was begun. `in_progress`: one is active, and nothing was begun.'
    )
  }),
  { description: 'What came of the call of a deploy hook.' }
)
export const hookParams = { token: described(string, 'The token of the deploy hook.') }
