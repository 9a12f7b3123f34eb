import { event, extensionPoint, publishedTable, type ResourceTeardown } from 'busbar/sdk'

/** The project rule of routes below `/api/projects/:projectId/databases/:databaseId`: that database, in that project. */
export const inDatabase = { param: 'projectId', chain: { databaseId: 'database' } } as const

/** What a database does. The first, and the last two, stand for work of the platform's on it. */
export const databaseStatuses = [
  'creating',
  'running',
  'stopped',
  'failed',
  'upgrading',
  'backing_up'
] as const
export type DatabaseStatus = (typeof databaseStatuses)[number]

/** All databases, with those that are being deleted. Foreign keys to it are `on delete restrict`. */
export const databaseTable = publishedTable('databases.database', {
  key: 'id',
  columns: {
    id: 'uuid',
    project_id: 'uuid',
    name: 'text',
    /** Unique on the instance: the name of its container, and of its host in the network of the project. */
    slug: 'text',
    /** The key of an engine: `postgres`. */
    type: 'text',
    version: 'text',
    /** A `DatabaseStatus`. */
    status: 'text',
    /** When its removal was asked for; null while it is there for users. */
    deleting_at: 'timestamptz null'
  }
})

/** What a plugin removes of a database that is being deleted; of each one of a deleted project too. */
export const databaseTeardown = extensionPoint<ResourceTeardown>('databases.teardown')

export const databaseDeleted = event<{ readonly databaseId: string; readonly projectId: string }>(
  'databases.deleted'
)

/** A database has ended by itself, or an upgrade of it has failed. Of one, the former is told at most once an hour. */
export const databaseFailed = event<{
  readonly databaseId: string
  readonly projectId: string
  /** What it is called. */
  readonly database: string
  readonly kind: 'ended' | 'upgrade'
  readonly reason: string
}>('databases.failed')

/** A database as its engine needs to know it. */
export interface EngineDatabase {
  readonly version: string
  /** As `newCredentials` has made them. */
  readonly credentials: Readonly<Record<string, string>>
  readonly port: number
  /** Where its data is; of an engine that leaves it to the user. Null otherwise. */
  readonly dataDir: string | null
}

/** What users ask for at the creation; what they have left out is the engine's choice. */
export interface WantedCredentials {
  readonly user?: string | undefined
  readonly password?: string | undefined
  readonly database_name?: string | undefined
  readonly root_password?: string | undefined
}

/**
 * A program in the container of a database. `argv` is read by no shell but those that it names, and has no secrets: these go
 * into `env`.
 */
export interface EngineCommand {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** How the container of a database is made. */
export interface EngineContainer {
  readonly env: Readonly<Record<string, string>>
  readonly command?: readonly string[]
  readonly entrypoint?: readonly string[]
  /** That of its image unless given. */
  readonly stopSignal?: string
}

/** Which databases of a server are meant. */
export type DumpChoice =
  | { readonly kind: 'all' }
  | { readonly kind: 'only' | 'except'; readonly names: readonly string[] }

/** Looks at a dump on its way into a server, and changes nothing in it. One is for one dump. */
export interface DumpGuide {
  /** What has to run in the container before its server gets this piece; null where nothing has. */
  before(piece: Buffer): EngineCommand | null
  /** What has to run when the server has read all. */
  after(): EngineCommand | null
}

/** How the data of a server is taken out and put in: as a stream of bytes. */
export interface EngineDump {
  /** How the bytes are written: `postgres-sql`. One that changes gets another name. */
  readonly format: string
  /** The names of its databases, a line each; null of an engine that has no such. */
  databases(database: EngineDatabase): EngineCommand | null
  /**
   * Writes all that is chosen; `all` has what belongs to no database too, such as roles. `except` has that as well. `only` has of that what
   * its databases need to be restored into a server that has none of it. Ends with 0 where it is whole.
   */
  dump(database: EngineDatabase, choice: DumpChoice): EngineCommand
  /**
   * Reads such a dump into a server that was made with `isEmpty`; one of `only` also into one that was filled by another dump. The dump may
   * be of a server whose credentials are others: those of this one hold afterwards. What is not as it should be ends it with another code
   * than 0.
   * Its last line is `restoredMark` where it has read the whole of it. `choice`: what it was dumped with; a dump may have more in it
   * where the programs of an engine cannot leave that out.
   */
  restore(database: EngineDatabase, choice: DumpChoice): EngineCommand
  /** What goes with a dump into a server that it would not be restored into by itself. Left out, or null, where it needs nothing. */
  guide?(database: EngineDatabase, choice: DumpChoice): DumpGuide | null
  /**
   * Makes what users of this database sign in with, where the dump was of another one: its user with its password, and its database.
   * One that the dump has not gets the databases that it has, and no right to the server that the user of a new database has not; one
   * that it has keeps its rights from there. Null of an engine whose dumps hold no such.
   */
  claim(database: EngineDatabase): EngineCommand | null
  /** Counts what is in it: a line `=name` for each database, and below it a line with a number for each part of that. */
  count(database: EngineDatabase): EngineCommand
}

/** See `EngineDump.restore`. */
export const restoredMark = 'busbar-restored'

/** All that is different from engine to engine. `plugins/databases/test/engine-contract.ts` has the tests that each one has to pass. */
export interface DatabaseEngine {
  /**
   * A user or a name that the engine does not take is a `Problem`. `password()` makes a new one; `name` is that of the database as
   * people call it.
   */
  newCredentials(
    wanted: WantedCredentials,
    context: { readonly name: string; readonly slug: string; password(): string }
  ): Readonly<Record<string, string>>
  /** Where its volume is mounted. */
  dataPath(database: Pick<EngineDatabase, 'version' | 'dataDir'>): string
  /**
   * `isEmpty`: without the database and the user that it usually begins with, as a restore makes them. `isAside`: not to serve, but to be
   * read, filled or compared; what a server does by itself at its times would be done twice, or change what is compared.
   */
  container(
    database: EngineDatabase,
    options: { readonly isEmpty: boolean; readonly isAside?: boolean }
  ): EngineContainer
  /**
   * A query over TCP in its container, which ends with 0 where the server answers. The image needs no shell for it; with `sh`, `date`
   * and `sleep` in it, it is asked more often. Programs of `dump` do need `sh`, by which they are begun. Null: that its port takes connections for two seconds
   * is all that can be asked.
   */
  ready(database: EngineDatabase): EngineCommand | null
  /** Values are escaped as URLs need it. Null of an engine that has none. */
  connectionString(database: EngineDatabase, host: string): string | null
  /** Those parts of a connection that variables of an application may be given. */
  connectionParts(database: EngineDatabase): {
    readonly user?: string
    readonly password?: string
    readonly database?: string
  }
  /** Null of an engine whose data is its files. */
  readonly dump: EngineDump | null
  /** Why a server of one version is not upgraded to another, in a sentence; null where it is. Absent: never. */
  upgradeRefusal?(from: string, to: string): string | null
}

/** A kind of databases, contributed under the `type` that users choose it by. */
export interface DatabaseEngineKind {
  readonly label: string
  /** Null: the user says which image and port. */
  readonly defaults: { readonly version: string; readonly port: number } | null
  image(version: string): string
  /** Its code is loaded when a database of it is worked on. */
  load(): Promise<DatabaseEngine>
}
export const databaseEngines = extensionPoint<DatabaseEngineKind>('databases.engines')
