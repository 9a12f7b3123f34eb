import { createHash } from 'node:crypto'
import { loadedPrefix } from 'busbar/api/runtime-docker'
import type { Clock, Database } from 'busbar/sdk'
import type { ImageNames } from './image-names.js'
import { fullRepository, versionOf } from './local-image.js'

/** Who a registry has handed an image to: one application, or everybody. */
export type Holder = string
export const everybody: Holder = ''

/** Stands for everybody where names of images have a part that nobody can guess. */
const nobody = '00000000-0000-0000-0000-000000000000'

/** An image that a registry has handed out, to the last byte. */
export interface FetchedImage {
  readonly holder: Holder
  /** As `fullRepository` writes it. */
  readonly repository: string
  /** Of what its name stood for: `sha256:…`. */
  readonly digest: string
  /** What the engine knows it by. No reference may name it, and nobody can guess it. */
  readonly handle: string
  /** Unpacked, the lowest first. */
  readonly layers: readonly string[]
}

/** What an image is needed for: to build upon, or for containers of an application. */
export type Purpose = 'base' | 'container'

const hourMs = 3600_000

/**
 * How long an image stays after it was last asked for, when no application keeps it. A base is asked for by name again and
 * again; what containers are made of is kept while one can be, and this is for the time until a deployment has noted it.
 */
const keepMs: Readonly<Record<Purpose, number>> = { base: 7 * 24 * hourMs, container: hourMs / 6 }

/** Which images registries have handed out, and to whom. What is not here nobody has been handed. */
export interface FetchedImages {
  /** What the name stood for when it was last fetched for this application, or for everybody. */
  find(applicationId: string, name: string, purpose: Purpose): Promise<FetchedImage | undefined>
  /** Those that begin with this layer and that the holder has been handed, or everybody. */
  withFirstLayer(holder: Holder, layer: string): Promise<readonly FetchedImage[]>
  /** True when what has one of these names on the engine was handed to the application, or to everybody. */
  isOpenTo(applicationId: string, names: readonly string[]): Promise<boolean>
  /** The name for what is about to be fetched: the same for all who fetch it for this holder, at once or one after the other. */
  begin(wanted: Pick<FetchedImage, 'holder' | 'repository' | 'digest'>): Promise<string>
  /** It has come: from now on the holder may use it by its digest, and by the name that it was fetched by. */
  settle(image: FetchedImage, fetch: SettledFetch): Promise<void>
  /** The application needs these for its containers, and no others any more. What is no name with a digest is ignored. */
  keep(applicationId: string, names: readonly string[]): Promise<void>
  /** Forgets the application; what it alone was handed is to go now. */
  forget(applicationId: string): Promise<void>
  /**
   * An image that is to go from the engine: a fetch was cut off, or the time of an image is over that no application keeps.
   * What it stood for is forgotten before, so nobody is given it. It is due again in an hour unless it is `removed`.
   * `isShort`: no room is left on a disk, so that bases go too which no build has asked for since the longest fetch began.
   */
  nextToRemove(isShort?: boolean): Promise<string | undefined>
  /** Unless a fetch of the same has begun meanwhile. */
  removed(handle: string): Promise<void>
}

interface SettledFetch {
  /** What it was fetched by. */
  readonly name: string
  /** Before the registry said what the name stands for: a slow fetch takes a name back to nothing older. */
  readonly askedAt: Date
  readonly applicationId: string
  readonly purpose: Purpose
}

export class FetchedImageStore implements FetchedImages {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly names: ImageNames,
    /** No fetch lasts longer. */
    private readonly longestFetchMs: number
  ) {}

  async find(applicationId: string, name: string, purpose: Purpose): Promise<FetchedImage | undefined> {
    const [found] = await this.db.sql<FetchedImage>(
      `
      update $schema.fetched_image set keep_until = greatest(keep_until, :until)
      where handle = (
        select handle from $schema.fetched_name
        where holder in ('', :applicationId) and repository = :repository and version = :version
        order by fetched_at desc limit 1)
      returning ${columns}`,
      {
        applicationId,
        repository: fullRepository(name),
        version: versionOf(name),
        until: this.#after(keepMs[purpose])
      }
    )
    return found
  }

  async withFirstLayer(holder: Holder, layer: string): Promise<readonly FetchedImage[]> {
    return await this.db.sql<FetchedImage>(
      `select ${columns} from $schema.fetched_image where holder in ('', ?) and layers[1] = ?`,
      [holder, layer]
    )
  }

  async isOpenTo(applicationId: string, names: readonly string[]): Promise<boolean> {
    const rows = await this.db.sql(
      `select from $schema.fetched_image where holder in ('', :applicationId) and handle = any(:names) limit 1`,
      { applicationId, names: [...names] }
    )
    return rows.length > 0
  }

  async begin({
    holder,
    repository,
    digest
  }: Pick<FetchedImage, 'holder' | 'repository' | 'digest'>): Promise<string> {
    const token = await this.names.tokenOf(holder === everybody ? nobody : holder)
    const hash = createHash('sha256').update(`${token} ${repository} ${digest}`).digest('hex')
    const handle = `${loadedPrefix}${hash.slice(0, 40)}:latest`
    await this.db.sql(
      `
      insert into $schema.image_to_remove (handle, due_at) values (:handle, :due)
      on conflict (handle) do update set due_at = excluded.due_at, is_being_removed = false`,
      { handle, due: this.#after(this.longestFetchMs) }
    )
    return handle
  }

  async settle(
    { layers, ...image }: FetchedImage,
    { name, askedAt, applicationId, purpose }: SettledFetch
  ): Promise<void> {
    await this.db.sql(
      `
      with settled as (delete from $schema.image_to_remove where handle = :handle),
      image as (
        insert into $schema.fetched_image (handle, holder, repository, digest, layers, keep_until)
        values (:handle, :holder, :repository, :digest, cast(:layers as text[]), :until)
        on conflict (handle) do update set keep_until = greatest(fetched_image.keep_until, excluded.keep_until)
        returning handle),
      use as (
        insert into $schema.fetched_image_use (application_id, handle)
        select :applicationId, handle from image where :purpose = 'container'
        on conflict do nothing)
      insert into $schema.fetched_name (holder, repository, version, handle, fetched_at)
      select distinct :holder, :repository, unnest(cast(:versions as text[])), handle, cast(:askedAt as timestamptz) from image
      on conflict (holder, repository, version) do update set handle = excluded.handle, fetched_at = excluded.fetched_at
      where fetched_name.fetched_at <= excluded.fetched_at`,
      {
        ...image,
        layers: [...layers],
        versions: [versionOf(name), image.digest],
        applicationId,
        purpose,
        askedAt,
        until: this.#after(keepMs[purpose])
      }
    )
  }

  async keep(applicationId: string, names: readonly string[]): Promise<void> {
    const pinned = names.filter(name => name.includes('@'))
    await this.db.sql(
      `
      with kept as (
        select n.handle from $schema.fetched_name n
        join unnest(cast(:repositories as text[]), cast(:versions as text[])) as wanted (repository, version)
          on wanted.repository = n.repository and wanted.version = n.version
        where n.holder in ('', :applicationId)),
      dropped as (
        delete from $schema.fetched_image_use
        where application_id = :applicationId and handle not in (select handle from kept))
      insert into $schema.fetched_image_use (application_id, handle)
      select distinct :applicationId, handle from kept
      on conflict do nothing`,
      { applicationId, repositories: pinned.map(fullRepository), versions: pinned.map(versionOf) }
    )
  }

  async forget(applicationId: string): Promise<void> {
    await this.db.sql(
      `
      with uses as (delete from $schema.fetched_image_use where application_id = :applicationId),
      own as (delete from $schema.fetched_image where holder = :applicationId returning handle)
      insert into $schema.image_to_remove (handle, due_at)
      select handle, cast(:now as timestamptz) from own
      on conflict (handle) do update set due_at = excluded.due_at`,
      { applicationId, now: this.clock.now() }
    )
  }

  async nextToRemove(isShort = false): Promise<string | undefined> {
    const now = this.clock.now()
    await this.db.sql(
      `
      with unused as (
        delete from $schema.fetched_image i
        where keep_until < :over and not exists (select from $schema.fetched_image_use u where u.handle = i.handle)
        returning handle)
      insert into $schema.image_to_remove (handle, due_at)
      select handle, cast(:now as timestamptz) from unused
      on conflict (handle) do update set due_at = excluded.due_at`,
      { now, over: isShort ? this.#after(keepMs.base - this.longestFetchMs) : now }
    )
    // A fetch of what is held already was cut off: there is nothing to remove.
    await this.db.sql(
      `
      delete from $schema.image_to_remove r
      where due_at <= :now and exists (select from $schema.fetched_image i where i.handle = r.handle)`,
      { now }
    )
    const [next] = await this.db.sql<{ handle: string }>(
      `
      update $schema.image_to_remove set due_at = :again, is_being_removed = true
      where handle = (
        select handle from $schema.image_to_remove where due_at <= :now order by due_at limit 1 for update skip locked)
      returning handle`,
      { now, again: this.#after(hourMs) }
    )
    return next?.handle
  }

  async removed(handle: string): Promise<void> {
    await this.db.sql('delete from $schema.image_to_remove where handle = ? and is_being_removed', [handle])
  }

  #after(ms: number): Date {
    return new Date(this.clock.now().getTime() + ms)
  }
}

const columns = 'handle, holder, repository, digest, layers'
