import {
  described,
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

export { type ApplicationAnswer, type ApplicationRow, application } from './application-schema.js'

const string = Type.String()
const integer = Type.Integer()

/** Not blank, no control characters. */
const name = described(
  Type.String({
    minLength: 1,
    maxLength: 100,
    pattern: '^[^\\S\\u0000-\\u001f]*[^\\s\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$'
  }),
  'What people call it: 1 to 100 characters, not blank, without control characters. Need not be the only one of its name.'
)
const line = Type.String({ maxLength: 500, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
const port = Type.Integer({ minimum: 1, maximum: 65_535 })
const cores = Type.Number({ minimum: 0, maximum: 1024 })
const bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

const type = described(
  oneOf(['git', 'image']),
  'Whether it is built from a repository (`source_repo`) or runs an image that exists (`source_image`). Fields of the other kind are refused.'
)
const sourceRepo = described(
  maybe(line),
  'The address of the repository, `https://…` or of SSH (`git@host:owner/repository.git`), without credentials. Required for `git`. Over SSH it is read by the deploy key of the application.'
)
const sourceImage = described(
  maybe(line),
  'The image, with a tag or a digest: `nginx:1.27`. Required for `image`. Each deploy asks the registry anew.'
)
const branch = described(
  maybe(line),
  'The branch to build; that of the repository unless given, or where it is empty.'
)
const gitToken = described(
  maybe(line),
  'A token of the host, for a repository over `https` that not everybody may read. It is kept encrypted and is in no answer.'
)
const integration = described(
  maybe(Type.String({ maxLength: 36 })),
  'The `id` of an integration of a host of repositories that you may use; none unless given, or where it is empty.'
)
const dockerfilePath = described(
  maybe(line),
  'Where the Dockerfile is, from `root_directory` and within the repository; `Dockerfile` unless given.'
)
const rootDirectory = described(
  maybe(line),
  'The folder of the repository that is built; all of it unless given.'
)
/** The password may be a key file of several lines, or a token of some thousand characters. */
const registry = {
  registry_username: described(
    maybe(nullable(Type.String({ maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f:]*$' }))),
    'The name of an account of the registry, for an image that it does not hand out to everybody; comes with the password. Left out, it stays; null, or empty, drops both.'
  ),
  registry_password: described(
    maybe(nullable(text({ max: 16_384 }))),
    'The password of that account, a token, or a key file. It is kept encrypted and is in no answer. Left out or empty, it stays, but not for another registry; null drops both.'
  )
}
/** A stage of the Dockerfile, and what kind of machine the image is made for. */
const buildChoices = {
  build_target: described(
    maybe(nullable(line)),
    'The stage of the Dockerfile that becomes the image, by name or number; null, or empty, for the last one.'
  ),
  build_platform: described(
    maybe(nullable(line)),
    'What kind of machine the image is made for, as `linux/arm64`; null, or empty, for the one that it runs on.'
  )
}
const startCommand = described(
  maybe(nullable(text({ max: 4000 }))),
  "What is started in the place of the image's own command: a line that is split into words as a shell does, and run without one, so that `$NAME`, `&&` or `|` take `sh -c '…'`. Null, or empty, for the image's own."
)
/** `image`, or one of the builders that are there: GET /api/builders. */
const buildTypeName = Type.String({ minLength: 1, maxLength: 100, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
const containerPort = described(
  maybe(nullable(port)),
  'The TCP port on which the container listens; null for the lowest that the image exposes, else 8080.'
)
const limits = {
  cpu_limit: described(
    maybe(cores),
    'How many CPU cores the container may use: fractions from 0.01 on, and no more than the machine has; 0 for no limit.'
  ),
  memory_limit: described(
    maybe(bytes),
    'How many bytes of memory the container may use, 6 MiB or more; 0 for no limit.'
  )
}
const ignoredWords = (instead: string): string =>
  `Taken and ignored, for clients that send an application back as they read it: \`PUT …/${instead}\` sets it.`

export const createBody = named(
  'CreateApplication',
  object({
    name,
    type,
    build_type: described(
      buildTypeName,
      'What turns the repository into an image: a `build_type` of `GET /api/builders`. `image` for an application that runs an image.'
    ),
    slug: described(
      maybe(Type.String({ maxLength: 100 })),
      'What its names are made of, with the slug of the project before it and a part of the id behind; `name` unless given.'
    ),
    source_repo: sourceRepo,
    branch,
    git_token: gitToken,
    git_integration_id: integration,
    dockerfile_path: dockerfilePath,
    root_directory: rootDirectory,
    ...buildChoices,
    source_image: sourceImage,
    ...registry,
    container_port: containerPort,
    start_command: startCommand,
    ...limits,
    health_check_path: described(
      maybe(line),
      'The path that an `http` health check asks for, beginning with `/`. Without one, a new version is proven by its port alone.'
    )
  }),
  {
    description: 'An application that is to be made. It is not deployed by that.',
    examples: [
      {
        name: 'Shop',
        type: 'git',
        build_type: 'dockerfile',
        source_repo: 'https://git.example.com/web/shop.git',
        branch: 'main',
        health_check_path: '/healthz'
      },
      { name: 'Cache', type: 'image', build_type: 'image', source_image: 'redis:7', container_port: 6379 }
    ]
  }
)
export type CreateBody = Static<typeof createBody>

/** `cpu_limit`, `memory_limit` and `health_check_path` are taken and ignored: they have operations of their own. */
export const updateBody = named(
  'UpdateApplication',
  object({
    name: maybe(name),
    source_repo: described(
      maybe(line),
      'The address of the repository. When it moves to another protocol, host or port, a stored `git_token` must be sent again, or dropped with null.'
    ),
    source_image: described(
      maybe(line),
      'The image, with a tag or a digest. When it moves to another registry, a stored `registry_password` must be sent again, or dropped with null.'
    ),
    ...registry,
    branch: described(
      maybe(nullable(line)),
      'The branch to build; null, or empty, for that of the repository.'
    ),
    dockerfile_path: described(
      maybe(nullable(line)),
      'Where the Dockerfile is, from `root_directory`; null, or empty, for `Dockerfile`.'
    ),
    root_directory: described(
      maybe(nullable(line)),
      'The folder of the repository that is built; null, or empty, for all of it.'
    ),
    ...buildChoices,
    build_type_override: described(
      maybe(nullable(line)),
      'The builder to use in the place of `build_type`, one of `GET /api/builders`; null, or empty, for none.'
    ),
    builder_image: described(
      maybe(nullable(line)),
      'The builder image of the build type `buildpacks`; null, or empty, for that of the platform.'
    ),
    custom_buildpacks: described(
      maybe(nullable(text({ max: 10_000 }))),
      'The buildpacks of the build type `buildpacks`, at most 50: a JSON array of texts, written as one text; null, or empty, for those that the builder image chooses.'
    ),
    git_token: described(
      maybe(nullable(line)),
      'A token of the host of the repository. It is kept encrypted and is in no answer. Left out or empty, it stays; null drops it.'
    ),
    git_integration_id: described(
      maybe(nullable(Type.String({ maxLength: 36 }))),
      'The `id` of an integration of a host of repositories that you may use; null, or empty, for none.'
    ),
    container_port: containerPort,
    start_command: startCommand,
    cpu_limit: described(maybe(Type.Number()), ignoredWords('resources')),
    memory_limit: described(maybe(integer), ignoredWords('resources')),
    health_check_path: described(maybe(nullable(string)), ignoredWords('health-check'))
  }),
  {
    description:
      'What is to change of an application. What is left out stays; null, or empty, clears what may be empty. Fields of the other `type` are refused.',
    examples: [{ branch: 'release', container_port: 3000 }]
  }
)
export type UpdateBody = Static<typeof updateBody>

export const changeSourceBody = named(
  'ChangeApplicationSource',
  object({
    type: described(oneOf(['git', 'image']), 'The kind that it is to be: the other one than it is.'),
    build_type: described(
      maybe(buildTypeName),
      'What turns the repository into an image, one of `GET /api/builders`: `railpack` unless given. `image`, or nothing, for an image.'
    ),
    source_repo: sourceRepo,
    source_image: sourceImage,
    ...registry,
    start_command: startCommand,
    branch,
    dockerfile_path: dockerfilePath,
    root_directory: rootDirectory,
    ...buildChoices,
    git_integration_id: integration,
    git_token: gitToken
  }),
  {
    description: 'The source that takes the place of the present one, of the other kind.',
    examples: [{ type: 'image', source_image: 'registry.example.com/web/shop:2.1' }]
  }
)
export type ChangeSourceBody = Static<typeof changeSourceBody>

const checkSeconds = maybe(nullable(Type.Integer({ maximum: 86_400 })))
export const healthCheckBody = named(
  'SetHealthCheck',
  object({
    type: described(
      oneOf(['none', 'http', 'command']),
      '`none`: a new version is proven by its port, or, without one, by living for two seconds. `http`: by a request. `command`: by a command in the container.'
    ),
    path: described(
      maybe(nullable(Type.String({ maxLength: 1000 }))),
      'Of `http`: what to ask for, beginning with `/` and without blanks; nothing, which is as `none`, unless given.'
    ),
    expect_status: described(
      maybe(nullable(integer)),
      'Of `http`: the status of a healthy version, 100 to 599; any from 200 to 299 unless given, or where it is 0.'
    ),
    command: described(
      maybe(nullable(text({ max: 4000 }))),
      'Of `command`, required there: a line for the shell of the container, which ends with 0 while it is healthy.'
    ),
    interval_seconds: described(
      checkSeconds,
      'Of `command`: seconds between two runs; 30 unless given, or where it is 0 or less.'
    ),
    retries: described(
      maybe(nullable(Type.Integer({ maximum: 1000 }))),
      'Of `command`: how many runs in a row must fail; 3 unless given, or where it is 0 or less.'
    ),
    start_period_seconds: described(
      checkSeconds,
      'Of `command`: seconds from the start in which failures do not count; 0 unless given.'
    ),
    timeout_seconds: described(
      checkSeconds,
      'Of `http`: the seconds in which a new version must become healthy, 120 unless given. Of `command`: those that one run may take, 30 unless given.'
    )
  }),
  {
    description: 'The whole check. Fields of another type are ignored, and what is left out has its default.',
    examples: [
      { type: 'http', path: '/healthz', timeout_seconds: 60 },
      { type: 'command', command: 'pg_isready', interval_seconds: 10, retries: 5 }
    ]
  }
)
export type HealthCheckBody = Static<typeof healthCheckBody>

export const resourcesBody = named('SetResources', object(limits), {
  description: 'What the container may use. What is left out stays.',
  examples: [{ cpu_limit: 0.5, memory_limit: 268_435_456 }]
})
export type ResourcesBody = Static<typeof resourcesBody>

const caps =
  'Which capabilities of Linux the processes of the container have: `minimal` none, which suits most images, `standard` those of Docker.'
const readonly =
  'Whether the files of the image cannot be changed; `/tmp` and `/run` can be written then, in memory.'
export const runtimeBody = named(
  'UpdateRuntime',
  object({
    container_caps: described(maybe(oneOf(['minimal', 'standard'])), caps),
    readonly_rootfs: described(maybe(Type.Boolean()), readonly)
  }),
  {
    description: 'How the container is closed off. What is left out stays.',
    examples: [{ container_caps: 'standard', readonly_rootfs: false }]
  }
)
export type RuntimeBody = Static<typeof runtimeBody>
export const runtimeAnswer = named(
  'ApplicationRuntime',
  object({
    container_caps: described(oneOf(['minimal', 'standard']), caps),
    readonly_rootfs: described(Type.Boolean(), readonly)
  }),
  { description: 'How the container of an application is closed off.' }
)

export const webhookBody = named(
  'UpdateWebhook',
  object({
    webhook_secret: described(
      maybe(nullable(Type.String({ maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]*$' }))),
      'What the host of the repository signs pushes with. It is kept encrypted. Left out or null, it stays; empty drops it.'
    ),
    auto_deploy_branch: described(
      maybe(nullable(line)),
      'The branch whose pushes deploy the application; empty for `main`, null for none of its own. Left out, it stays.'
    )
  }),
  {
    description: 'What may deploy the application when somebody pushes.',
    examples: [{ webhook_secret: '4f6b0e5d8a', auto_deploy_branch: 'main' }]
  }
)
export type WebhookBody = Static<typeof webhookBody>
export const webhookSecretAnswer = named(
  'WebhookSecret',
  object({ webhook_secret: described(string, 'The secret in clear.') }),
  { description: 'What pushes are signed with.' }
)

export const healthAnswer = named(
  'ApplicationHealth',
  object({
    deployment_id: described(nullable(uuid()), 'The latest deployment; null before the first one.'),
    deploy_status: described(
      nullable(oneOf(['pending', 'building', 'deploying', 'success', 'failed'])),
      'How far that is: `pending`, `building`, `deploying`, `success` or `failed`; null before the first one.'
    ),
    status: described(
      oneOf(['passing', 'failing', 'skipped', 'pending']),
      'What its health check says: `passing`, `failing`, `skipped` where nothing is checked, `pending` where it has not begun.'
    ),
    message: described(nullable(string), 'Why, in a sentence; null when there is nothing to say.'),
    checked_at: described(nullable(timestamp()), 'When it was last checked; null before the first time.')
  }),
  { description: 'How the latest deployment of an application is.' }
)

export const deletedAnswer = statusResponse
