import { described, named, nullable, object, oneOf, type Static, Type, timestamp, uuid } from 'busbar/sdk'
import { applicationStatuses } from './api.js'

const string = Type.String()
const integer = Type.Integer()
const seconds = nullable(integer)
export const applicationStatus = described(
  oneOf(applicationStatuses),
  'What its container does: `inactive` was never deployed, `stopped` ended or was stopped, `error` ended with a failure, `unhealthy` runs and fails its health check.'
)
const fields = {
  id: described(uuid(), 'What the application is called in paths and other bodies. Never changes.'),
  project_id: described(uuid(), 'The project that it lies in.'),
  parent_application_id: described(
    nullable(uuid()),
    'The application that it is a preview of; null for one that is no preview.'
  ),
  name: described(string, 'What people call it.'),
  slug: described(
    string,
    'What its container, its host name in the network of the project and its images are called: made of the slug of the project, a name and a part of the id. Never changes.'
  ),
  type: described(
    oneOf(['git', 'image']),
    'Whether it is built from a repository or runs an image that exists.'
  ),
  status: applicationStatus,
  build_type: described(
    string,
    'What turns the repository into an image, one of `GET /api/builders`; `image` for an application that runs an image.'
  ),
  build_type_override: described(
    nullable(string),
    'The builder that is used in the place of `build_type`; null for none.'
  ),
  builder_image: described(
    nullable(string),
    'The builder image of the build type `buildpacks`; null for that of the platform.'
  ),
  custom_buildpacks: described(
    string,
    'The buildpacks of the build type `buildpacks` in their order: a JSON array of texts, written as one text; `[]` for those that the builder image chooses.'
  ),
  source_kind: described(
    nullable(string),
    'What it was made from, where that was a `template`; null otherwise.'
  ),
  source_ref: described(nullable(string), 'Which one: `<id>@<version>`; null otherwise.'),
  source_repo: described(
    nullable(string),
    'The address of the repository; null for an application that runs an image.'
  ),
  source_image: described(
    nullable(string),
    'The image as it was given; null for an application that is built.'
  ),
  branch: described(nullable(string), 'The branch that is built; null for that of the repository.'),
  auto_deploy_branch: described(
    nullable(string),
    'The branch whose pushes deploy the application; null where none was set.'
  ),
  dockerfile_path: described(
    nullable(string),
    'Where the Dockerfile is, from `root_directory`; null for `Dockerfile`.'
  ),
  root_directory: described(
    nullable(string),
    'The folder of the repository that is built; null for all of it.'
  ),
  build_target: described(
    nullable(string),
    'The stage of the Dockerfile that becomes the image, by name or number; null for the last one.'
  ),
  build_platform: described(
    nullable(string),
    'What kind of machine the image is made for, as `linux/arm64`; null for the one that it runs on.'
  ),
  git_integration_id: described(
    nullable(uuid()),
    'The integration of a host of repositories that the repository is read by; null for none.'
  ),
  has_git_credentials: described(
    Type.Boolean(),
    'Whether a token for the repository is stored. It is in no answer.'
  ),
  registry_username: described(
    nullable(string),
    'The name of the account of the registry that the image is pulled with; null for none.'
  ),
  has_registry_credentials: described(
    Type.Boolean(),
    'Whether the password of that account is stored. It is in no answer.'
  ),
  has_webhook_secret: described(
    Type.Boolean(),
    'Whether pushes can be signed: a secret for them is stored, which `GET …/webhook/reveal` shows.'
  ),
  deploy_hook_enabled: described(Type.Boolean(), 'Whether there is a URL that deploys without a credential.'),
  preview_branch_pattern: described(nullable(string), 'Which branches get a preview; null for none.'),
  preview_domain_template: described(
    nullable(string),
    'What the hosts of previews are called; null for none.'
  ),
  container_port: described(
    nullable(integer),
    'The TCP port on which the container listens; null for the lowest that the image exposes, else 8080.'
  ),
  start_command: described(
    nullable(string),
    "What is started in the place of the image's own command, as a line that is split into words and run without a shell; null for the image's own."
  ),
  cpu_limit: described(Type.Number(), 'How many CPU cores the container may use; 0 for no limit.'),
  memory_limit: described(integer, 'How many bytes of memory the container may use; 0 for no limit.'),
  container_caps: described(
    oneOf(['minimal', 'standard']),
    'Which capabilities of Linux its processes have: `minimal` none, as at first, `standard` those of Docker.'
  ),
  readonly_rootfs: described(
    Type.Boolean(),
    'Whether the files of the image cannot be changed, as at first; `/tmp` and `/run` can be written then, in memory.'
  ),
  health_check_type: described(
    oneOf(['none', 'http', 'command']),
    'How a new version is proven before it gets requests: by its port alone, by a request, or by a command in the container.'
  ),
  health_check_path: described(
    nullable(string),
    'The path that an `http` check asks for; null for no path, which makes it the same as `none`.'
  ),
  health_check_command: described(
    nullable(string),
    'The command of a `command` check; null for other types.'
  ),
  health_check_expect_status: described(
    nullable(integer),
    'The status that an `http` check takes for healthy; null for any from 200 to 299.'
  ),
  health_check_interval_seconds: described(
    seconds,
    'Seconds between two runs of a `command` check; null for 30.'
  ),
  health_check_retries: described(
    nullable(integer),
    'How many runs of a `command` check in a row must fail; null for 3.'
  ),
  health_check_start_period_seconds: described(
    seconds,
    'Seconds from the start in which failures of a `command` check do not count; null for 0.'
  ),
  health_check_timeout_seconds: described(
    seconds,
    'Of an `http` check the seconds in which a new version must become healthy, null for 120; of a `command` check those that one run may take, null for 30.'
  ),
  pending_change: described(
    oneOf(['', 'config', 'source']),
    'What was changed and does not run yet: `config` comes by a reload or a deploy, `source` by a deploy. Empty for nothing, and before the first deploy.'
  ),
  config_changed_at: described(
    nullable(timestamp()),
    'When settings were last changed that do not run yet; null for none.'
  ),
  source_changed_at: described(
    nullable(timestamp()),
    'When the source was last changed without a deploy since; null for none.'
  ),
  last_activity_at: described(
    nullable(timestamp()),
    'When it was last deployed, or its container started or stopped; null before the first time.'
  ),
  last_deployed_at: described(
    nullable(timestamp()),
    'When a deployment last succeeded; null before the first time.'
  ),
  created_at: described(timestamp(), 'When it was made.'),
  updated_at: described(timestamp(), 'When its settings were changed last.')
}

const row = object(fields)
/** An application as it stands in the database, without what only answers have. */
export type ApplicationRow = Static<typeof row>

export const application = named(
  'Application',
  object({
    ...fields,
    direct_url: described(
      nullable(string),
      'An address that leads to it without a domain, the same across deploys; null while it does not run, or where there are no such addresses.'
    )
  }),
  { description: 'A source, the settings of its container, and how that is.' }
)
export type ApplicationAnswer = Static<typeof application>
