import type { Readable, Writable } from 'node:stream'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import type { Access, ProjectRole } from './access.js'
import type { ProjectId, SignedInCaller } from './caller.js'
import type { CredentialSource, Credentials } from './credential.js'
import type { DomainEvent } from './event.js'
import type { NotificationKinds } from './notification.js'
import type { Method } from './route.js'
import type { Schedules } from './schedule.js'
import { extensionPoint, type Service, service } from './service.js'
import type { Statistics } from './statistics.js'
import type { Tx } from './tx.js'

export type Log = Logger

/**
 * The plugin's own PostgreSQL schema. One pool of twelve connections serves all that is built in; such a plugin may hold
 * six of them at a time. A third-party one has up to three of its own, which nobody else's statements run on. A statement that
 * waits longer than 10 s for a connection gets 503 E_DATABASE_BUSY, and one that waits longer than 5 s for a lock 503
 * E_DATABASE_LOCKED. One of a third-party plugin takes five minutes at most.
 */
export interface Database {
  /** The schema's name, for SQL text: `select … from ${db.schema}.note`. */
  readonly schema: string
  /** knex over one of the plugin's tables, within `tx` when given. */
  table<Row extends object>(name: string, tx?: Tx): Knex.QueryBuilder<Row, Row[]>
  /**
   * Raw SQL with knex bindings (`?` or `:name`); `$schema` stands for the plugin's schema. Each statement may run on another
   * connection: what one sets for the session is gone for the next, and `begin` is refused; use `transaction`. What a function
   * sets is not seen: it stays on that connection, for statements of this plugin alone, so let functions use `set local`.
   */
  sql<Row extends object>(
    text: string,
    bindings?: readonly unknown[] | Record<string, unknown>,
    tx?: Tx
  ): Promise<Row[]>
  /** A named prepared statement (`$1` parameters), for queries on the hot path: half the cost of knex. */
  statement<Row extends object, Args extends readonly unknown[] = unknown[]>(
    name: string,
    text: string
  ): (args: Args, tx?: Tx) => Promise<Row[]>
  /**
   * Commits when `run` resolves, rolls back when it throws. Never nest; pass `tx` on instead. One in which nothing
   * is asked for 30 s is ended: wait for nothing but the database in it.
   */
  transaction<T>(run: (tx: Tx) => Promise<T>): Promise<T>
  /** Runs after `tx` has committed; never when it rolls back. */
  afterCommit(tx: Tx, run: () => void): void
}

export interface EnqueueOptions {
  /** A job of the same name and key that has not started is replaced: at most one waits. */
  readonly key?: string
  /** Jobs of the same queue run one after another. */
  readonly queue?: string
  readonly runAt?: Date
}
/** Durable jobs of this plugin. Given `tx`, the job exists exactly when the transaction commits. */
export interface Jobs {
  enqueue(name: string, payload: object, options?: EnqueueOptions, tx?: Tx): Promise<void>
}

/** Domain events. Only the owner of an event emits it. */
export interface Events {
  emit<T>(event: DomainEvent<T>, data: T, tx: Tx): Promise<void>
  /** The same for several facts, in one statement. */
  emitEach<T>(event: DomainEvent<T>, facts: readonly T[], tx: Tx): Promise<void>
}

/**
 * Live data: at most once, ordered per channel. A message without subscribers costs nothing, but for one that tells a state
 * (`ChannelSpec.current`), which goes to all processes.
 */
export interface Bus {
  /** Of at most 1 MiB as JSON; what is longer is told nobody, and logged. */
  publish(channel: string, event: string, data: unknown): void
  /** False without a subscriber in this process or another: a producer may skip the work. */
  hasSubscribers(channel: string): boolean
  /**
   * Resolves when the next messages on the channel have room on their way to other processes: at once where none has a
   * subscriber or little waits; never rejects. What is published while 4 MiB wait there is lost to them, so whoever has
   * much to publish at once (thousands of lines) awaits this every 64 KiB or so, and then publishes before awaiting
   * anything else. It may take as long as the database takes: hold up nothing else by it.
   */
  room(channel: string): Promise<void>
  /**
   * Tells every process, this one included, at most once and after `tx` committed when one is given.
   * For "look again" messages (cancel, a changed row), not for data.
   */
  signal(topic: string, data: string, tx?: Tx): Promise<void>
  onSignal(topic: string, listener: (data: string) => void): () => void
}

/** Encryption of what is stored. `place` binds a value to its column and row: it opens nowhere else. */
export interface Secrets {
  seal(plaintext: string, place: SecretPlace): string
  open(sealed: string, place: SecretPlace): string
  /**
   * Makes every log line, event and cleaned text leave out these values (and their base64 and URL-encoded
   * forms) until the returned function is called. For secrets of the installation: what a tenant has chosen, such as
   * "success", would be taken out of what others read, and goes into a `scope()`.
   */
  redact(values: readonly string[]): () => void
  /** A copy of `text` with all values that `redact` hides now replaced by `[REDACTED]`, and what may be half of one beside a `cutMark`. */
  clean(text: string): string
  /** For the secrets of one tenant. */
  scope(): SecretScope
  /**
   * A code that proves that this plugin of this installation wrote `text`: for what is kept where others can write
   * too. `<key id>.<HMAC-SHA256 as base64url>`, the same for the same text until the key of the installation changes.
   * It proves `text` alone: who can read the code can copy both, so put into `text` what cannot be copied.
   */
  sign(text: string): string
  /** Whether `code` is from `sign(text)`, by any key that the installation still has. False for whatever else it may be. */
  verify(text: string, code: string): boolean
}
/**
 * Values that are left out of the platform's log, and of the texts that are cleaned here. Other texts and events do not
 * change: clean here what is written or published for the one whose secrets they are.
 */
export interface SecretScope {
  /** Hides these values too, in the same forms as `Secrets.redact`. */
  redact(values: readonly string[]): void
  /** A copy of `text` with these values, and all that `Secrets.redact` hides, replaced by `[REDACTED]`; what may be half of one beside a `cutMark` too. */
  clean(text: string): string
  /** Hides none of them any more. */
  release(): void
}
export interface SecretPlace {
  readonly table: string
  readonly column: string
  readonly row: string
}

export interface ExecOptions {
  readonly cwd?: string
  /** The whole environment of the process: nothing is inherited but PATH, HOME and LANG. */
  readonly env?: Readonly<Record<string, string>>
  /** `Infinity`: a server, which runs until it is told to end. */
  readonly timeoutMs: number
  /** Per stream; what comes after is dropped and `truncated` set. Default 1 MiB. */
  readonly maxOutputBytes?: number
  readonly signal?: AbortSignal
  readonly input?: string
  /** Called with each line while the process runs; one of more than 16 Ki characters ends there, with `cutMark`. */
  readonly onLine?: (line: string, stream: 'stdout' | 'stderr') => void
}
export interface ExecResult {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
  readonly truncated: boolean
  readonly timedOut: boolean
}
/** Processes from argv arrays, never through a shell; the whole process group dies on time-out and abort. */
export interface Exec {
  run(argv: readonly [string, ...string[]], options: ExecOptions): Promise<ExecResult>
}

/** The only source of time, so that tests can move it. */
export interface Clock {
  /** What time it is, by the clock of the machine: that may be set, forward or back. */
  now(): Date
  /** Milliseconds since some moment: only the difference of two counts. It goes on evenly, whatever the machine's clock is set to. */
  elapsed(): number
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Runs `run` every `ms`, never two at a time, until the returned function is called. */
  every(ms: number, run: () => void | Promise<void>): () => void
}

/** Facts of this installation. */
export interface Instance {
  readonly version: string
  /** A folder of this plugin's own under BUSBAR_DIR; made on first use. */
  directory(): Promise<string>
  /** Where the platform listens: HOST, an address or a name. */
  readonly host: string
  /**
   * The address by which browsers reach the dashboard, without a slash at its end: PUBLIC_BASE_URL, or
   * `http://localhost:<PORT>` while the platform listens on loopback only; otherwise undefined.
   */
  readonly publicUrl: string | undefined
  /** True when TRUST_PROXY is set: what listens on loopback only may be reached from elsewhere. */
  readonly behindProxy: boolean
  /** True while the platform listens on a loopback address only. */
  readonly loopbackOnly: boolean
  /** TRUST_PROXY: addresses and ranges of proxies in front, whose `X-Forwarded-For` and `-Proto` are believed. */
  readonly trustedProxies: readonly string[]
  /**
   * A header for requests that a proxy of this installation hands on to the platform: with it the platform believes
   * `X-Forwarded-For` and `-Proto`, which that proxy has set anew. It is a secret, and goes nowhere but to the platform.
   */
  readonly ownProxy: { readonly header: string; readonly value: string }
  /** Where the platform listens, as its own machine reaches it; null before it does, which is after its built-in plugins have started. */
  listening(): { readonly host: string; readonly port: number } | null
}

/** What is written to the audit log that no request does: an end that came by itself, or what the platform did. */
export interface AuditEntry {
  /** `terminal.session.ended`; as of a route. */
  readonly action: string
  readonly resource: string
  readonly resourceId: string | null
  readonly projectId: string | null
  /** In whose name it was, as they were called then; null where it was in nobody's. */
  readonly user: { readonly id: string; readonly email: string; readonly username: string } | null
  /** Plain JSON; no secrets. */
  readonly details: Readonly<Record<string, unknown>>
  readonly ip: string | null
}

/** What the kernel recorded from the `audit` of routes. Records are read and forgotten, never changed. */
export interface AuditLog {
  /**
   * For SQL text: `select … from ${audit.table}`, newest by `created_at desc, id desc`. Columns: `id, action, resource_type,
   * resource_id, project_id, user_id, user_email, user_username, token_id, token_name, details (jsonb), ip_address, created_at`.
   */
  readonly table: string
  /** Deletes the oldest records from before that time, `atMost` so many; how many they were. */
  forget(before: Date, atMost: number): Promise<number>
  /** Adds a record, when `tx` commits; what routes declare is recorded by itself. */
  record(entry: AuditEntry, tx?: Tx): Promise<void>
}

/** An operation as its plugin declared it: `GET`, `/api/projects/:projectId`. */
export interface Operation {
  readonly method: Method
  readonly url: string
  readonly summary: string
  readonly group: string
  readonly access: Access
}

/** What is being served. */
export interface Operations {
  /**
   * The operations that let this caller in as far as scope, role and pins decide it; which projects they may
   * be used on is decided for each request. Public ones are left out.
   */
  admitting(caller: SignedInCaller): readonly Operation[]
}

/** Resources, by the kinds that plugins declare in `resources`. */
export interface Resources {
  /**
   * Removes a resource of this plugin: marks it, and those of its kind that lie in it, in `tx`; a durable job takes it
   * apart once that has committed. False when it does not exist, is marked already, or does not lie in `project`.
   */
  remove(
    resource: { readonly kind: string; readonly id: string; readonly project?: ProjectId },
    tx: Tx
  ): Promise<boolean>
  /**
   * What resources of any plugin are called now. Asked for UUIDs; those that no longer exist are left out, and none is
   * known of a kind whose plugin is off or which names none.
   */
  namesOf(
    kind: string,
    ids: readonly string[]
  ): Promise<ReadonlyArray<{ readonly id: string; readonly name: string }>>
}

/**
 * A connection of its own to the database of the platform, beside the pool and without its limits: for work that takes as
 * long as the data is large. It sees every schema. Texts of values are the same whatever the server is set to.
 */
export interface BulkConnection {
  /** With `$1` parameters. Without any, `text` may be several statements, whose rows are not answered. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  /** The bytes that `copy … to stdout` answers. It fails as the statement does. */
  copyOut(text: string): Readable
  /** Takes the bytes of `copy … from stdin`; it has finished when the server has taken them all. */
  copyIn(text: string): Writable
  /** What is not committed is rolled back. */
  close(): Promise<void>
  /** Ends it at once, with what is under way. */
  cut(): void
}

/** Everything that the installation consists of, for the plugin that backs it up. */
export interface Installation {
  /** BUSBAR_DIR. */
  readonly directory: string
  /** BUSBAR_PLUGINS: folders with third-party plugins beside `<directory>/plugins`. */
  readonly pluginFolders: readonly string[]
  /** Names of the environment variables that the platform was given and reads, in order. No values. */
  variables(): readonly string[]
  /** The keys that everything stored is sealed with, as `keys.json` holds them: 64 hexadecimal digits by id. Never to be written in clear. */
  keys(): { readonly current: string; readonly keys: Readonly<Record<string, string>> }
  connect(): Promise<BulkConnection>
  /** The schemas of the kernel, its libraries and all plugins, whether these are on, off, or gone. */
  schemas(connection: Pick<BulkConnection, 'query'>): Promise<readonly string[]>
}

/** The kernel's services, by the names of a manifest's `grants`. */
export interface KernelServices {
  readonly database: Database
  readonly jobs: Jobs
  readonly schedules: Schedules
  readonly events: Events
  readonly bus: Bus
  readonly secrets: Secrets
  readonly exec: Exec
  readonly clock: Clock
  readonly instance: Instance
  readonly resources: Resources
  readonly notificationKinds: NotificationKinds
  /** For the plugin that shows and keeps the audit log, and for what happens without a request; built-in plugins only. */
  readonly audit: AuditLog
  /** For the plugin that keeps sessions and tokens; built-in plugins only. */
  readonly credentials: Credentials
  /** What a caller may do; built-in plugins only. */
  readonly operations: Operations
  /** What the kernel remembers about projects; the owner of the facts says when they change. Built-in plugins only. */
  readonly projectFacts: ProjectFactsCache
  /** For the plugin that shows how the platform is; built-in plugins only. */
  readonly statistics: Statistics
  /** For the plugin that backs the platform up; built-in plugins only. */
  readonly installation: Installation
}

const kernelService = <K extends keyof KernelServices>(name: K): Service<KernelServices[K]> =>
  service(`kernel.${name}`)

/** The keys of `KernelServices`, for `needs`. */
export const kernel: { readonly [K in keyof KernelServices]: Service<KernelServices[K]> } = {
  database: kernelService('database'),
  jobs: kernelService('jobs'),
  schedules: kernelService('schedules'),
  events: kernelService('events'),
  bus: kernelService('bus'),
  secrets: kernelService('secrets'),
  exec: kernelService('exec'),
  clock: kernelService('clock'),
  instance: kernelService('instance'),
  resources: kernelService('resources'),
  notificationKinds: kernelService('notificationKinds'),
  audit: kernelService('audit'),
  credentials: kernelService('credentials'),
  operations: kernelService('operations'),
  projectFacts: kernelService('projectFacts'),
  statistics: kernelService('statistics'),
  installation: kernelService('installation')
}

/** What the guard must know of a project. */
export interface ProjectFacts {
  readonly id: string
  readonly ownerId: string
  /** With every user, as editors. */
  readonly shared: boolean
  /** By user id: who has been given a role of their own. The wider of it and `shared` counts. */
  readonly members: Readonly<Record<string, Exclude<ProjectRole, 'owner'>>>
  /** A project that is being deleted is invisible. */
  readonly deleting: boolean
}
export interface ProjectFactsCache {
  /** Drops what is remembered of a project, in every process, after `tx` committed. */
  invalidate(projectId: string, tx?: Tx): Promise<void>
}

export const access = {
  /** Contributed once, by the plugin that keeps users, sessions and tokens, under the key `identity`. */
  credentials: extensionPoint<CredentialSource, 'identity'>('access.credentials'),
  /** Contributed once, by the plugin that owns projects, under the key `projects`. */
  projects: extensionPoint<{ facts(projectId: string): Promise<ProjectFacts | undefined> }, 'projects'>(
    'access.projects'
  )
} as const

/** Contributions to `GET /healthz`, by name: resolve with `ok` or a detail, throw what is wrong. */
export const healthChecks = extensionPoint<{ check(): Promise<string> }>('kernel.healthChecks')

/** Something that is wrong with how an instance is set up, and what helps. */
export interface ConfigWarning {
  /** Stable, for clients: `no_public_url`. `a-z`, `0-9` and `_`. */
  readonly code: string
  /** A sentence without a full stop: what is wrong, and what comes of it. Admins read it: no secrets. */
  readonly message: string
  /** What to do about it: which setting to give, which command to run. */
  readonly remedy: string
}

/**
 * Contributions to `config_warnings` of `GET /api/stats`, by name: what the plugin finds wrong with the configuration of the
 * instance and its machine, as it is now. Asked when an admin looks, at most twice a minute, with a limit of five seconds;
 * one that fails is left out. A state that passes by itself belongs to `healthChecks`.
 */
export interface ConfigCheck {
  warnings(): Promise<readonly ConfigWarning[]>
}
export const configChecks = extensionPoint<ConfigCheck>('kernel.configChecks')

/** Whether the platform is being updated, for `GET /api/version`. Contributed once, by the plugin that is told of updates; for built-in plugins. */
export const updateState = extensionPoint<{ isUpdating(): boolean }, 'platform'>('kernel.updateState')
