import type { Readable } from 'node:stream'
import { event, extensionPoint, service, type Tx } from 'busbar/sdk'

/*
 * The plugin `backups` has destinations, schedules, runs, restores, drills, retention, encryption and checksums. What is backed
 * up belongs to other plugins: each contributes one source, and has `backups` in `optional`.
 *
 *     contribute(backupSources, 'database', self.backupSource)
 *
 * Paths of this plugin name the resources of sources by their kinds: a source `database` declares a resource of the kind
 * `database` (`databaseId`), a source `volume` one of the kind `volume` (`volumeId`) that lies in an `application`.
 *
 * A backup goes so: `find` → `space` → `dump` → its `content` is read → `end` → `settle`.
 * A restore: `find` → `space` → all of the stored file is read and proven (but see `restoresBeside`) → `restore` → `settle`.
 * A drill: `check`, of a resource that may be gone.
 *
 * Everything is a stream. `content` is what the source writes and reads in a form of its own, neither compressed nor encrypted:
 * that is done here, on the way.
 */

export const sourceKinds = ['database', 'volume'] as const
export type SourceKind = (typeof sourceKinds)[number]

/** What backups may be made of, by its kind. Every method gets ids of resources of that kind. */
export const backupSources = extensionPoint<BackupSource, SourceKind>('backups.sources')

/** What a source says of one of its resources as it is now. */
export interface BackupResource {
  readonly id: string
  readonly projectId: string
  /** What people call it. */
  readonly name: string
  /** In the names of files: letters of `a-z`, digits and hyphens. Of a volume: `<slug of the application>-<name of the volume>`. */
  readonly slug: string
  /**
   * What its dumps are restored into: `postgres`, `mysql`, …; of a volume `volume`. A backup is restored into a resource of the
   * same kind and engine.
   */
  readonly engine: string
  /** Of the engine; '' where it has none. */
  readonly version: string
  /** In which application it is, of a volume; null otherwise. */
  readonly application: { readonly id: string; readonly name: string } | null
  /** Where a volume is mounted; null otherwise. */
  readonly mountPath: string | null
  /** The databases that it holds, where that is known at once: a schedule may name these alone. Empty otherwise, and any may be named. */
  readonly databases: readonly string[]
  /**
   * Why no backup may begin now, in a sentence for who asked: `the database is stopped: start it`. Null where one may. That
   * one is under way already is known here.
   */
  readonly backupRefusal: string | null
  /**
   * Whether that ends by itself, as an upgrade does: what is due at its time then waits, up to the next time, instead of having failed.
   * Left out: it does not.
   */
  readonly refusalPasses?: boolean
  /** The same of a restore into it. That it is stopped is no reason: see `restore`. */
  readonly restoreRefusal: string | null
}

/** What comes along with each call that takes long. */
export interface BackupWork {
  /** Aborts when the platform stops, when the time is up, and when another part has failed. Everything begun has to end then. */
  readonly signal: AbortSignal
  /** Adds a line to the log of the run, which people read: no secrets. */
  say(message: string): void
}

/** What comes along with a restore. */
export interface RestoreWork extends BackupWork {
  /** A UUID: of each restore that is asked for another one, and the same when it is begun again. */
  readonly id: string
  /**
   * What is restored is what there is from now on, and takes what is written to it: the restore is not begun again by a platform that
   * is killed behind this. Called in the transaction in which the source gives up what was there before. A source that does not call
   * it has its restores begun again unless `restore` has resolved.
   */
  restored(tx: Tx): Promise<void>
}

/**
 * What comes along with `settle`. After a restore that is not over, all of it is there: what was exchanged already, and serves, may be
 * kept. A source that puts back by itself what was left, while backups are off, has the signal alone.
 */
export interface SettleWork
  extends Pick<BackupWork, 'signal'>,
    Partial<Pick<RestoreWork, 'id' | 'restored'>> {
  /**
   * The source has put back the restore `id` by itself before, and what was there before it has taken writes since: it has failed, and is
   * not begun again. Said each time that it is asked, until another restore begins. `reason`: a sentence for the user; without one it says
   * that it was cut off.
   */
  undone?(reason?: string): void
}

export interface DumpOptions {
  /** Which of its databases; empty: all of them, and whatever belongs to them all, such as roles. */
  readonly databases: readonly string[]
  /** Whether what writes to it stands still meanwhile: the application of a volume is stopped. */
  readonly quiesce: boolean
}

export interface Dump {
  /**
   * How `content` is written: `postgres-sql`, `mysql-sql`, `mongo-archive`, `redis-rdb`, `tar`. It is kept with the backup and
   * given to `restore` and `check`, also by later releases: a form that changes gets another name. `a-z`, digits, hyphens.
   */
  readonly format: string
  /**
   * The bytes. It is destroyed with an error where it fails, and ends where there is no more, which proves nothing yet (a
   * program that crashes closes its output too): see `end`. Who destroys it ends the program that writes it.
   */
  readonly content: Readable
  /**
   * Called once, after `content` has ended and before the file counts as stored: resolves where the dump is whole (the program has
   * ended with 0, and has written its last line), rejects with the reason in a sentence where it is not. Nothing is kept then.
   */
  end(): Promise<DumpFacts>
}

/** What a source knows of a dump that is whole; null where it is not known without much work. */
export interface DumpFacts {
  /** Rows or keys of databases, files of volumes. A drill that finds fewer has failed. */
  readonly rows: number | null
}

/** A stored dump as it is read: proven, decrypted and decompressed. */
export interface StoredDump {
  readonly format: string
  /** As `DumpOptions.databases`. */
  readonly databases: readonly string[]
  /** The version of the engine that it was made of. */
  readonly version: string
  /** How long `content` is. */
  readonly bytes: number
  /**
   * Rejects, as streams do, where the destination fails in the middle. All of it was proven before, or is by its end: where that comes
   * without an error, it was whole.
   */
  readonly content: Readable
}

/** What a drill has found. */
export interface CheckFacts {
  /** Rows or keys of all databases, or files; what a check query counted. */
  readonly rows: number
  /** What else there is to know, in a sentence: `3 databases, 41 tables`. */
  readonly detail: string
}

/** The room that there is for a restore. */
export interface SourceSpace {
  /** How many bytes are free where the resource lies; null where it is not known. */
  readonly free: number | null
}

/** A resource that was just made. */
export type MadeResource = Omit<BackupResource, 'databases' | 'backupRefusal' | 'restoreRefusal'>

/** A resource that is gone, as what is left of it is shown. */
export type RemovedResource = Pick<
  BackupResource,
  'id' | 'projectId' | 'name' | 'slug' | 'engine' | 'version'
>

export interface BackupSource {
  /** Undefined where it does not exist, is not in that project, or is being deleted. A look; asked often. */
  find(id: string, projectId: string): Promise<BackupResource | undefined>

  /**
   * Why a schedule may name none of its databases, in a sentence: `redis has no databases with names`. Null where it may: names that
   * are not known (`BackupResource.databases`) are looked for by `dump`. Left out: it may.
   */
  choiceRefusal?(id: string): Promise<string | null>

  /**
   * Begins a dump; resolves when its first byte may be read. Rejects with a sentence where it does not begin. The state that
   * people see (`backing_up`) is the source's to write, and `settle` the place to take it back.
   */
  dump(id: string, options: DumpOptions, work: BackupWork): Promise<Dump>

  /**
   * Replaces what is in the resource by the dump; resolves when that is done and works. A resource that is stopped is started
   * for it and is stopped afterwards, by `settle`. Where the engine can, it is one transaction, or happens beside the present
   * data, which goes when all has been read: where `content` fails in the middle, the resource has what it had. Where the
   * engine cannot, the rejection says what is in it now.
   */
  restore(id: string, dump: StoredDump, work: RestoreWork): Promise<void>

  /**
   * Whether `restore` fills something beside what is there, which goes on as it is, reads such a dump to its end, and exchanges the two
   * only then. The end of `content` proves all of it, so the file is read once: otherwise all of it is read and proven before `restore`
   * is called. Left out: never.
   */
  restoresBeside?(dump: Pick<StoredDump, 'format' | 'databases'>): boolean

  /**
   * Called after each `dump`, `restore` and `check`, however it ended, and after a crash of the platform in the middle of one: puts
   * back what was done for it, and for it alone, as a drill may be under way beside a backup. What was quiesced runs, what was stopped
   * is stopped, helpers and throwaway copies are removed, the state is shown again.
   * Where a restore was cut off behind the exchange, what is restored may have taken writes that are nowhere else: it is kept, and
   * `work.restored` called, where it works.
   * A source may put back what was left by itself as well, where nobody makes backups. It keeps how a restore has ended so, and says
   * it here when backups are on again: by `work.restored` or `work.undone`.
   * Idempotent; a resource that is gone is none of its business.
   */
  settle(id: string, what: 'backup' | 'restore' | 'check', work: SettleWork): Promise<void>

  /**
   * Restores into a throwaway copy that nobody else reaches (a container or a volume of its own, no network of the project),
   * asks it, and takes it away whatever happens. `of` is as it was at the backup; the resource may be gone or have another
   * version now. Rejects in a sentence where the dump does not work.
   */
  check(of: RemovedResource, dump: StoredDump, work: BackupWork): Promise<CheckFacts>

  /** Asked before a restore, which is refused where `free` is less than the dump is long. */
  space(id: string): Promise<SourceSpace>

  /**
   * What `recreate` needs to make the resource again after it is gone, under its name and with its credentials: a text of the
   * source's own. It is kept sealed, and goes nowhere but to `recreate`. Asked after each backup. Null where it can not.
   */
  blueprint(id: string): Promise<string | null>

  /**
   * Makes a resource again that is gone; it may be restored into once `ready` resolves. Rejects with a `Problem` where its name has
   * been taken since. Left out by a source whose resources nobody makes again.
   */
  recreate?(
    of: RemovedResource,
    blueprint: string
  ): Promise<{
    readonly id: string
    /** As the operation that creates one answers it. */
    readonly answer: Readonly<Record<string, unknown>>
  }>
  /** Resolves when what `recreate` has made runs and may be restored into; asked again after a crash. */
  ready?(id: string, work: Pick<BackupWork, 'signal'>): Promise<void>

  /**
   * Asked of what lay in an application and is gone, as `made` and the end of the application may have been told while backups were off.
   * What has its name in that application now; undefined where nothing has, `ended` where the application is gone as well, or goes.
   * Left out by a source whose resources lie in none.
   */
  heir?(of: {
    readonly projectId: string
    readonly applicationId: string
    readonly name: string
  }): Promise<MadeResource | 'ended' | undefined>
}

/** What sources ask for. Get it with `optional(backupKeeper)`. */
export interface BackupKeeper {
  /**
   * A resource is being removed: called in the transaction that deletes its row (`removal.deleted`). Its schedules end. Its backups are kept as
   * orphaned ones, for `orphaned_backup_retention_days`, or erased by and by where `deleteBackups` is set. With those of a
   * project or an application that is removed nothing has to be done. A source that could not call it (backups were off) is noticed: what
   * `find` does not find any more has orphaned backups.
   */
  removed(
    kind: SourceKind,
    resource: RemovedResource,
    options: { readonly deleteBackups: boolean; readonly blueprint: string | null },
    tx: Tx
  ): Promise<void>
  /**
   * A resource is made in an application: called in the transaction that inserts its row. What is kept of one of that name that was
   * removed there before is its own from now on, and orphaned no more. A source that could not call it is asked for the `heir` later.
   */
  made(kind: SourceKind, resource: MadeResource, tx: Tx): Promise<void>
  /** What goes, or is left, when it is removed: for `deletion-impact`. Names of destinations in order, `local` for this machine. */
  impact(
    kind: SourceKind,
    id: string
  ): Promise<{ readonly backupCount: number; readonly destinations: readonly string[] }>
  /** What is under way: an upgrade, a removal or a restart of the resource waits, or is refused. */
  activity(kind: SourceKind, id: string): Promise<'backup' | 'restore' | null>
}
export const backupKeeper = service<BackupKeeper>('backups.keeper')

/**
 * Where backups are kept, by the provider that a destination names: `s3`, `local`, `minio`, … What is kept at another one than `local`
 * counts as kept elsewhere than on this machine (`has_remote`).
 */
export const backupDestinations = extensionPoint<DestinationKind>('backups.destinations')

/** The fields of a destination, secrets in clear. Those that a kind does not use are ''. */
export interface DestinationSettings {
  readonly provider: string
  readonly projectId: string
  /** A host with its port where it has one; '' is the provider's own. */
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  readonly useSsl: boolean
  readonly accessKey: string
  readonly secretKey: string
}

/**
 * A way of keeping files. `plugins/backups/test/destination-contract.ts` has the tests that each kind has to pass.
 */
export interface DestinationKind {
  /** Which fields must not be empty. */
  readonly needs: ReadonlyArray<'bucket' | 'keys'>
  /** Asks nothing of the place yet. */
  open(settings: DestinationSettings): Promise<BackupStorage>
}

/** In a sentence what a place did not do, and what helps. It has no secrets. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
}

/** A place that keeps files by key (`a/b/c.backup.gz`). What fails is a `StorageError`, or the reason of the signal. */
export interface BackupStorage {
  /** Stores what `content` gives until its end, in bounded memory: whole under that key, or not at all. What is there is replaced. */
  put(key: string, content: AsyncIterable<Buffer>, options: { readonly signal: AbortSignal }): Promise<void>
  /** From the byte `from` on. */
  get(
    key: string,
    options: { readonly signal: AbortSignal; readonly from?: number }
  ): Promise<AsyncIterable<Buffer>>
  /** How long it is; null where there is none. */
  size(key: string, options: { readonly signal: AbortSignal }): Promise<number | null>
  /** Takes it away, with what uploads of that key have left half. Nothing there is no failure. */
  remove(key: string, options: { readonly signal: AbortSignal }): Promise<void>
  /** Resolves when files may be kept there. Leaves nothing behind. */
  test(options: { readonly signal: AbortSignal }): Promise<void>
  /** Bytes that are free; null where that is not known. */
  free(): Promise<number | null>
}

interface BackupEvent {
  readonly projectId: string
  readonly resourceId: string
  /** What it is called. */
  readonly resource: string
  readonly kind: SourceKind
  /** Of a volume; null otherwise. */
  readonly applicationId: string | null
}

/** A backup of a database or a volume has failed, or was cut off. */
export const backupFailed = event<BackupEvent & { readonly backupId: string; readonly reason: string }>(
  'backups.failed'
)
/** A restore has ended well. */
export const backupRestored = event<BackupEvent & { readonly restoreId: string }>('backups.restored')
export const restoreFailed = event<BackupEvent & { readonly restoreId: string; readonly reason: string }>(
  'backups.restoreFailed'
)
/** A drill could not restore the newest backup: it is worth nothing as it is. */
export const drillFailed = event<BackupEvent & { readonly backupId: string; readonly reason: string }>(
  'backups.drillFailed'
)
