import { described, list, maybe, named, nullable, object, type Static, Type, timestamp } from 'busbar/sdk'

export const features = named(
  'Features',
  object({
    buildkit_available: described(
      Type.Boolean(),
      'Whether there is a builder that works by BuildKit (`railpack`); whether it can be used on this machine, `GET /api/builders` says.'
    ),
    instance_name: described(
      Type.String(),
      'What the instance was called at its set-up; `Busbar` where it got no name.'
    )
  }),
  { description: 'What may be known of an instance without a credential.' }
)
export type Features = Static<typeof features>

const count = (words: string) => described(Type.Integer(), words)

const appHealth = named(
  'AppHealth',
  object({
    running: count('Applications that run.'),
    unhealthy: count('Applications that run and whose health check fails.'),
    errored: count('Applications whose container has ended by itself, or could not be started.'),
    stopped: count('Applications that somebody has stopped.'),
    inactive: count('Applications that were never deployed.'),
    busy: count('Applications with a deployment under way of which no version runs; they count here alone.'),
    total: count('All of these.')
  }),
  { description: 'Applications by what they do, each counted once.' }
)
export type AppHealth = Static<typeof appHealth>

const deployStats = named(
  'DeployStats',
  object({
    succeeded: count('Deployments that have succeeded.'),
    failed: count('Deployments that have failed, cancelled ones too.'),
    total: count('Both together.'),
    median_build_ms: described(
      Type.Number(),
      'The median time, in milliseconds, of the builds of those that have succeeded; 0 where nothing was built.'
    )
  }),
  { description: 'Deployments that were begun in the last seven days and have ended.' }
)
export type DeployStats = Static<typeof deployStats>

const attention = named(
  'NeedsAttention',
  object({
    failed_deploys: count('Applications whose latest deployment has failed.'),
    error_services: count(
      'Applications and databases that have ended by themselves, or could not be started.'
    ),
    unhealthy_services: count('Applications and databases that run and whose health check fails.'),
    failed_backups: count('Backups whose latest run has failed; 0 for members.'),
    total: count('All of these together.')
  }),
  { description: 'What somebody should look at.' }
)

const bytes = (words: string) => described(Type.Integer(), words)
const host = named(
  'HostPoint',
  object({
    cpu_percent: described(Type.Number(), 'What all processors together are used, from 0 to 100.'),
    memory_used: bytes('Bytes of memory in use.'),
    memory_total: bytes('Bytes of memory.'),
    disk_used: bytes('Bytes in use on the file system of `/`.'),
    disk_total: bytes('Bytes of that file system.'),
    swap_used: bytes('Bytes of swap in use.'),
    swap_total: bytes('Bytes of swap; 0 where there is none.'),
    recorded_at: described(timestamp(), 'When it was measured.')
  }),
  {
    description:
      "What the platform's machine uses, as it was within the last seconds; 0 for what cannot be read."
  }
)
export type HostPoint = Static<typeof host>

const warning = named(
  'ConfigWarning',
  object({
    code: described(Type.String(), 'Which one it is, the same in every release: `no_public_url`.'),
    message: described(Type.String(), 'What is wrong, and what comes of it.'),
    remedy: described(Type.String(), 'What helps.')
  }),
  { description: 'Something that is wrong with how the instance is set up.' }
)

export const stats = named(
  'Stats',
  object({
    is_admin: described(
      Type.Boolean(),
      'Whether the caller is an admin, who is told of all projects and of the machine.'
    ),
    app_health: described(appHealth, 'Applications by what they do.'),
    deploy_7d: described(deployStats, 'How deployments of the last seven days have ended.'),
    needs_attention: described(attention, 'What somebody should look at, by the kind of trouble.'),
    host: described(
      nullable(host),
      "What the platform's machine uses; null for members and pinned tokens, and where nothing measures it."
    ),
    config_warnings: described(
      list(warning),
      'What is wrong with how the instance is set up, as it was within the last half a minute; empty for members and pinned tokens.'
    )
  }),
  { description: 'How everything is that the caller may see.' }
)
export type Stats = Static<typeof stats>

const containerType = named(
  'ContainerTypeCount',
  object({ running: count('Those that run.'), total: count('Those that were ever started.') }),
  { description: 'Containers of one kind.' }
)
const containers = named(
  'ContainerStats',
  object({
    running: count('Those that run, unhealthy ones too.'),
    stopped: count('Those that somebody has stopped.'),
    error: count('Those that have ended by themselves, or could not be started.'),
    total: count('All of these.'),
    by_type: described(
      Type.Record(Type.String(), containerType),
      'The same by what they are for: `application`, `database`.'
    )
  }),
  {
    description:
      'The serving containers of applications and databases, by their status. `GET /api/docker/containers` lists everything on the engine.'
  }
)
export type ContainerStats = Static<typeof containers>

export const summary = named(
  'Summary',
  object({
    projects: count('How many projects there are.'),
    applications: count('How many applications there are.'),
    databases: count('How many databases there are.'),
    deployments: count('Records of deployments; the older ones of an application are removed.'),
    containers: described(containers, 'What of that runs.')
  }),
  { description: 'How much of everything there is, counted within the last seconds.' }
)
export type Summary = Static<typeof summary>

export const serviceQuery = object({
  service: described(
    maybe(Type.String({ maxLength: 100, examples: ['caddy'] })),
    'Which part of the installation, by its id: `caddy`, where Caddy serves hostnames.'
  )
})

const serverService = named(
  'ServerService',
  object({
    name: described(Type.String(), 'As people know it: `PostgreSQL`.'),
    description: described(Type.String(), 'What it is for; where it does not work, why not.'),
    status: described(Type.String(), '`running` or `error`.')
  }),
  { description: 'A part of the installation.' }
)
export const serverServices = named(
  'ServerServices',
  object({
    healthy: count('How many of them work.'),
    total: count('How many there are.'),
    services: described(list(serverService), 'Proxy, container engine, builder, database, job queue.')
  }),
  { description: 'What the installation consists of, and how it is.' }
)
export type ServerServices = Static<typeof serverServices>

export const platformLogs = named(
  'PlatformLogs',
  object({
    service: described(Type.String(), 'Whose log it is.'),
    content: described(Type.String(), 'Its newest lines, the newest last; 1 000 at most.')
  }),
  { description: 'The log of a part of the installation.' }
)
export type PlatformLogs = Static<typeof platformLogs>

export const restartedService = named(
  'RestartedService',
  object({
    service: described(Type.String(), 'What was restarted.'),
    status: described(Type.String(), 'Always `restarted`.')
  }),
  { description: 'A part of the installation was restarted.' }
)
export type RestartedService = Static<typeof restartedService>
