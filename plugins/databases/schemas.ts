import {
  described,
  maybe,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'
import { databaseStatuses } from './api.js'

const string = Type.String()
const integer = Type.Integer()
const wantedPort = Type.Integer({ minimum: 0, maximum: 65_535 })
const line = (max: number) => Type.String({ maxLength: max, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
const version = Type.String({ maxLength: 128, pattern: '^(?:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$' })
const cores = Type.Number({ minimum: 0, maximum: 1024 })
const bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const databaseStatus = described(
  oneOf(databaseStatuses),
  'What it does: `creating` until its server answers, `failed` where it has ended with an error or could not be made, `upgrading` and `backing_up` while the platform is at that.'
)

const externalAccess = named(
  'DatabaseExternalAccess',
  object({
    enabled: described(Type.Boolean(), 'Whether it is reached from outside of its project.'),
    host_port: described(integer, 'The port of 127.0.0.1 of the machine.'),
    ssh_host: described(
      string,
      'The host to open a tunnel to: what is set, else the address of the machine; empty where neither is known.'
    ),
    ssh_user: described(string, 'The user for that; empty where nobody has said it.')
  }),
  { description: 'How a database is reached from outside of its project: through a tunnel to the machine.' }
)

export const database = named(
  'Database',
  object({
    id: described(uuid(), 'What the database is called in paths.'),
    project_id: described(uuid(), 'The project that it is in.'),
    name: described(string, 'What people call it.'),
    slug: described(
      string,
      'The name of its container, and of its host in the network of the project. Never changes.'
    ),
    type: described(string, 'The kind of server: `postgres`, `mysql`, `mariadb`, `redis`, `mongo`, `other`.'),
    version: described(string, 'The version of the server, as the tag of its image; empty for `other`.'),
    status: databaseStatus,
    status_detail: described(
      nullable(string),
      'What is being done for it just now, or why it has failed; null where there is nothing to say.'
    ),
    image: described(nullable(string), 'The image as it was chosen; null before it is known.'),
    image_digest: described(
      nullable(string),
      'The digest of the image that its containers are made from, until an upgrade; null before it is fetched.'
    ),
    source_kind: described(
      nullable(string),
      'What it was made from, where that was a `template`; null otherwise.'
    ),
    source_ref: described(nullable(string), 'Which one: `<id>@<version>`; null otherwise.'),
    backup_mode: described(
      string,
      'How it is backed up: `none` for types that are dumped, `volume_snapshot` or `command` for `other`.'
    ),
    backup_command: described(
      nullable(string),
      'What writes a backup in its container; null without `command`.'
    ),
    restore_command: described(nullable(string), 'What reads it there again; null without `command`.'),
    data_dir: described(nullable(string), 'Where its data is, of `other`; null for types that know it.'),
    internal_host: described(nullable(string), 'The host by which applications of the project reach it.'),
    internal_port: described(nullable(integer), 'The port of that host.'),
    container_port: described(nullable(integer), 'The port that was given for `other`; null otherwise.'),
    host_port: described(
      nullable(integer),
      'The port of 127.0.0.1 by which the machine reaches it; null without external access.'
    ),
    credentials_encrypted: described(
      string,
      'A mark: the credentials are stored, encrypted, and shown by `reveal` alone.'
    ),
    cpu_limit: described(Type.Number(), 'Cores that it may use; 0 for no limit.'),
    memory_limit: described(integer, 'Bytes of memory that it may use; 0 for no limit.'),
    container_missing: described(
      Type.Boolean(),
      'True where it is stopped or failed and its container is gone: reload it, its data is kept.'
    ),
    external_access: described(
      nullable(externalAccess),
      'Null where it is not reached from outside, and until its port is open.'
    ),
    volume: described(
      nullable(
        named(
          'DatabaseVolume',
          object({
            name: described(string, 'The name of the volume on the engine.'),
            size_bytes: described(
              integer,
              'How much was in it when it was measured last: see `GET …/volume`.'
            )
          }),
          { description: 'Where the data of a database is.' }
        )
      ),
      'Where its data is; null before it was measured for the first time.'
    ),
    created_at: described(timestamp(), 'When it was made.')
  }),
  { description: 'A database.' }
)
export type DatabaseAnswer = Static<typeof database>

const wantedCredentials = named(
  'CreateDatabaseCredentials',
  object({
    user: described(
      maybe(line(63)),
      'The user of applications; the choice of the type unless given. Not root for MySQL and MariaDB.'
    ),
    password: described(maybe(text({ max: 128 })), 'Its password; a random one unless given.'),
    database_name: described(maybe(line(64)), 'The database to make in it; its `name` unless given.'),
    root_password: described(
      maybe(text({ max: 128 })),
      'The password of root, for MySQL and MariaDB; a random one unless given.'
    )
  }),
  { description: 'What a database is made with. Whatever is left out is chosen.' }
)

export const createBody = named(
  'CreateDatabase',
  object({
    name: described(
      Type.String({
        minLength: 1,
        maxLength: 100,
        pattern: '^[^\\S\\u0000-\\u001f]*[^\\s\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$'
      }),
      'What people call it: 1 to 100 characters, not blank, without control characters.'
    ),
    slug: described(maybe(line(100)), 'Another base for its slug than the name.'),
    type: described(
      Type.String({ minLength: 1, maxLength: 40, pattern: '^[a-z][a-z0-9-]*$', examples: ['postgres'] }),
      'The kind of server: `postgres`, `mysql`, `mariadb`, `redis`, `mongo`, `other`.'
    ),
    version: described(
      maybe(version),
      'The version, as the tag of its image; that of the type unless given. Not for `other`.'
    ),
    credentials: described(maybe(nullable(wantedCredentials)), 'What it is made with.'),
    image: described(maybe(line(500)), 'The image; required for `other` and not for anything else.'),
    container_port: described(
      maybe(nullable(wantedPort)),
      'The port that its server listens on; required for `other`. 0 is as if not given.'
    ),
    data_dir: described(
      maybe(line(500)),
      'Where it keeps its data, for `other`; `/data` unless given. Absolute, and not `/`.'
    ),
    env: described(
      maybe(Type.Record(Type.String({ maxLength: 200 }), Type.String({ maxLength: 32_768 }))),
      'The variables of its container, for `other`. They are kept encrypted, as credentials.'
    ),
    backup_mode: described(
      maybe(oneOf(['', 'none', 'volume_snapshot', 'command'])),
      'How it is backed up, for `other`: `volume_snapshot` unless given.'
    ),
    backup_command: described(
      maybe(text({ max: 4000 })),
      'With `command`: what a shell in its container runs to write a backup into `$BUSBAR_BACKUP_DIR`.'
    ),
    restore_command: described(
      maybe(text({ max: 4000 })),
      'With `command`: what a shell in its container runs to read it from there.'
    )
  }),
  {
    description: 'What to make.',
    examples: [{ name: 'shop', type: 'postgres' }]
  }
)
export type CreateBody = Static<typeof createBody>

export const updateBody = named(
  'UpdateDatabase',
  object({
    cpu_limit: described(maybe(cores), 'Cores that it may use; 0 for no limit. It stays unless given.'),
    memory_limit: described(
      maybe(bytes),
      'Bytes of memory that it may use; 0 for no limit. It stays unless given.'
    )
  }),
  { description: 'New limits.', examples: [{ memory_limit: 536_870_912 }] }
)
export type UpdateBody = Static<typeof updateBody>

export const upgradeBody = named(
  'UpgradeDatabase',
  object({
    target_version: described(
      maybe(line(128)),
      'The version to bring it to: the same one fetches its image anew, a lower major one is refused. Required.'
    )
  }),
  { description: 'Where an upgrade leads.', examples: [{ target_version: '17' }] }
)

export const externalAccessBody = named(
  'SetExternalAccess',
  object({
    enabled: described(Type.Boolean(), 'Whether it is to be reached by a port of 127.0.0.1 of the machine.')
  }),
  { description: 'Whether a database is reached from outside of its project.', examples: [{ enabled: true }] }
)

export const credentialsAnswer = named(
  'DatabaseCredentials',
  object({
    credentials: described(
      Type.Record(Type.String(), Type.String()),
      'The credentials by their names; of `other`, its variables.'
    ),
    connection_string: described(
      string,
      'The address with user and password, escaped as URLs need it; empty for `other`.'
    )
  }),
  { description: 'How a database is signed in to.' }
)

export const impactAnswer = named(
  'DatabaseDeletionImpact',
  object({
    backup_count: described(integer, 'How many backups of it there are.'),
    backup_destinations: described(
      Type.Array(string),
      'Where they are, by the names of destinations; `local` for this machine.'
    )
  }),
  { description: 'What is left, or goes, when a database is deleted.' }
)

export const volumeAnswer = named(
  'DatabaseVolumeSize',
  object({
    name: described(string, 'The name of the volume on the engine.'),
    size_bytes: described(
      nullable(integer),
      'How much is in it; null where it could not be measured within 10 seconds.'
    )
  }),
  { description: 'Where the data of a database is, measured now.' }
)

/** What of a connection a variable of an application can be. */
const attachmentParts = ['url', 'host', 'port', 'user', 'password', 'database'] as const

export const attachmentBody = named(
  'AttachDatabase',
  object({
    variables: described(
      Type.Record(Type.String({ maxLength: 200 }), oneOf(attachmentParts)),
      'The variables that containers of the application get, by name, each with the part of the connection that it holds: `url`, `host`, `port`, `user`, `password` or `database`. Variables of the application itself come before them.'
    )
  }),
  {
    description: 'By which variables an application finds a database.',
    examples: [{ variables: { DATABASE_URL: 'url' } }]
  }
)

export const attachment = named(
  'DatabaseAttachment',
  object({
    application_id: described(uuid(), 'The application.'),
    variables: described(
      Type.Record(Type.String(), oneOf(attachmentParts)),
      'Its variables by name, each with the part of the connection that it holds.'
    ),
    created_at: described(timestamp(), 'When it was attached first.')
  }),
  { description: 'An application that gets the connection of a database as variables.' }
)
export type AttachmentAnswer = Static<typeof attachment>

export const upgradeAnswer = named(
  'DatabaseUpgrade',
  object({
    id: described(uuid(), 'What the upgrade is called.'),
    phase: described(
      oneOf(['running', 'switched', 'succeeded', 'failed']),
      'How far it has come: `running` before the switch, `switched` until the new server is proven.'
    ),
    from_version: described(string, 'The version before.'),
    to_version: described(string, 'The version that it leads to.'),
    log: described(string, 'What was done, a line each.'),
    error: described(nullable(string), 'Why it failed; null where it did not.'),
    started_at: described(timestamp(), 'When it began.'),
    finished_at: described(nullable(timestamp()), 'When it ended; null while it has not.'),
    kept_until: described(
      nullable(timestamp()),
      'Until when the old volume is kept, unless it is confirmed before; of an upgrade that was given up after its new server had served, the new one. Null where it is gone.'
    )
  }),
  { description: 'An upgrade of a database.' }
)
export type UpgradeAnswer = Static<typeof upgradeAnswer>
