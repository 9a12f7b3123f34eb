import { createHash, randomUUID } from 'node:crypto'
import { loadedPrefix } from 'busbar/api/runtime-docker'
import type { Clock, Database } from 'busbar/sdk'
import type { ImageNames } from './image-names.js'
import { fullRepository, versionOf } from './local-image.js'

/** Who a registry has handed an image to: one application, or everybody. */
export type Holder = string
export const everybody: Holder = ''

/** Stands for everybody where names of images have a random part. */
const everybodyId = '00000000-0000-0000-0000-000000000000'

/** An image that a registry has handed out, to the last byte. */
export interface FetchedImage {
  readonly holder: Holder
  /** As `fullRepository` writes it. */
  readonly repository: string
  /** Of what its name stood for: `sha256:…`. */
  readonly digest: string
  /** What the engine knows it by. No reference may name it, and it cannot be guessed. */
  readonly handle: string
  /** Unpacked, the lowest first. */
  readonly layers: readonly string[]
}

/** What an image is needed for: to build upon, or for containers of an application. */
export type Purpose = 'base' | 'container'

const hourMs = 3600_000
/** What could not be removed, in use or not there yet, is tried again after this. */
const retryMs = 60_000

/**
 * How long an image stays after it was last asked for, when no application keeps it. A base is asked for by name again and
 * again; what containers are made of is kept while one can be, and this is for the time until a deployment has noted it.
 */
const keepMs: Readonly<Record<Purpose, number>> = { base: 7 * 24 * hourMs, container: hourMs / 6 }

/** Which images registries have handed out, and to whom. What is not here was handed out to no application. */
export interface FetchedImages {
  /** What the name stood for when it was last fetched for this application, or for everybody. */
  find(applicationId: string, name: string, purpose: Purpose): Promise<FetchedImage | undefined>
  /** Those that begin with this layer and that the holder has been handed, or everybody. */
  withFirstLayer(holder: Holder, layer: string): Promise<readonly FetchedImage[]>
  /** True when what has one of these names on the engine was handed to the application, or to everybody. */
  isOpenTo(applicationId: string, names: readonly string[]): Promise<boolean>
  /** Claims what is about to be fetched, for `claimMs`. */
  begin(
    wanted: Pick<FetchedImage, 'holder' | 'repository' | 'digest'> & Pick<SettledFetch, 'applicationId'>
  ): Promise<BegunFetch>
  /** Its process lives, and waits for it: it is claimed for `claimMs` from now on. */
  renew(fetchId: string): Promise<void>
  /** It was cut off, and the engine goes on with what it was handed. What comes of that is to go when it is there. */
  abandon(fetchId: string): Promise<void>
  /** It has ended without a use, and the engine is done with it: what has come is to go now, unless another fetch claims it. */
  ended(fetchId: string): Promise<void>
  /** Whether the engine is still at work on what a fetch for the application was abandoned with. */
  isLoading(applicationId: string): Promise<boolean>
  /** It has come: from now on the holder may use it by its digest, and by the name that it was fetched by. */
  settle(image: FetchedImage, fetch: SettledFetch): Promise<void>
  /** The application needs these for its containers, and no others any more. What is no name with a digest is ignored. */
  keep(applicationId: string, names: readonly string[]): Promise<void>
  /** Forgets the application; what it alone was handed is to go now. */
  forget(applicationId: string): Promise<void>
  /**
   * An image that is to go from the engine: no living fetch claims it, and no application keeps it or its time is over. What it
   * stood for is forgotten before, so no application is given it. It is due again in a minute unless it is `removed`. `isShort`: no
   * room is left on a disk, so that bases go too which no build has asked for since the longest fetch began, and those that
   * could not be removed just now are tried again. None of `tried`.
   */
  nextToRemove(options?: {
    readonly isShort?: boolean
    readonly tried?: readonly string[]
  }): Promise<string | undefined>
  /**
   * Unless a fetch of the same has begun meanwhile. It is looked for again while a fetch that was cut off may still bring it;
   * `wasThere`: one of those has.
   */
  removed(handle: string, options: { readonly wasThere: boolean }): Promise<void>
}

/** A fetch that is under way. */
export interface BegunFetch {
  readonly id: string
  /** The same for all who fetch it for this holder, at once or one after the other. */
  readonly handle: string
}

/** How long a fetch stays claimed by a process that does not say any more that it is under way: it has died. */
export const claimMs = 60_000

interface SettledFetch {
  /** Of the `BegunFetch`. */
  readonly fetchId: string
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
    digest,
    applicationId
  }: Pick<FetchedImage, 'holder' | 'repository' | 'digest'> &
    Pick<SettledFetch, 'applicationId'>): Promise<BegunFetch> {
    const token = await this.names.tokenOf(holder === everybody ? everybodyId : holder)
    const hash = createHash('sha256').update(`${token} ${repository} ${digest}`).digest('hex')
    const handle = `${loadedPrefix}${hash.slice(0, 40)}:latest`
    const id = randomUUID()
    // In one statement: no other process sees it due and not claimed.
    await this.db.sql(
      `
      with claim as (
        insert into $schema.image_fetch (id, handle, application_id, claimed_until, may_come_until)
        values (:id, :handle, :applicationId, :claimedUntil, :mayComeUntil))
      insert into $schema.image_to_remove (handle, due_at) values (:handle, :now)
      on conflict (handle) do update set due_at = excluded.due_at, is_being_removed = false`,
      {
        id,
        handle,
        applicationId,
        now: this.clock.now(),
        claimedUntil: this.#after(claimMs),
        mayComeUntil: this.#after(this.longestFetchMs)
      }
    )
    return { id, handle }
  }

  async renew(fetchId: string): Promise<void> {
    await this.db.sql('update $schema.image_fetch set claimed_until = :until where id = :fetchId', {
      fetchId,
      until: this.#after(claimMs)
    })
  }

  async abandon(fetchId: string): Promise<void> {
    await this.db.sql(
      `
      update $schema.image_fetch set claimed_until = :claimedUntil, may_come_until = :until, is_abandoned = true
      where id = :fetchId`,
      { fetchId, claimedUntil: this.#after(claimMs), until: this.#after(this.longestFetchMs) }
    )
  }

  async ended(fetchId: string): Promise<void> {
    // What could not be removed while it was not there, or in use, is due at once.
    await this.db.sql(
      `
      with ended as (delete from $schema.image_fetch where id = :fetchId returning handle)
      update $schema.image_to_remove set due_at = :now where handle in (select handle from ended)`,
      { fetchId, now: this.clock.now() }
    )
  }

  async isLoading(applicationId: string): Promise<boolean> {
    const rows = await this.db.sql(
      `
      select from $schema.image_fetch
      where application_id = :applicationId and is_abandoned and claimed_until > :now limit 1`,
      { applicationId, now: this.clock.now() }
    )
    return rows.length > 0
  }

  async settle(
    { layers, ...image }: FetchedImage,
    { fetchId, name, askedAt, applicationId, purpose }: SettledFetch
  ): Promise<void> {
    await this.db.sql(
      `
      with settled as (delete from $schema.image_to_remove where handle = :handle),
      claim as (delete from $schema.image_fetch where id = :fetchId),
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
        fetchId,
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

  async nextToRemove({
    isShort = false,
    tried = []
  }: {
    readonly isShort?: boolean
    readonly tried?: readonly string[]
  } = {}): Promise<string | undefined> {
    const now = this.clock.now()
    await this.db.sql(
      `
      with gone as (delete from $schema.image_fetch where may_come_until <= :now and claimed_until <= :now),
      unused as (
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
      where due_at <= :now and exists (select from $schema.fetched_image i where i.handle = r.handle)
        and not exists (${claims})`,
      { now }
    )
    const [next] = await this.db.sql<{ handle: string }>(
      `
      update $schema.image_to_remove set due_at = :again, is_being_removed = true
      where handle = (
        select handle from $schema.image_to_remove r
        where (due_at <= :now or :isShort) and handle <> all(:tried) and not exists (${claims})
          and not exists (select from $schema.fetched_image i where i.handle = r.handle)
        order by due_at limit 1 for update skip locked)
      returning handle`,
      { now, again: this.#after(retryMs), isShort, tried: [...tried] }
    )
    return next?.handle
  }

  async removed(handle: string, { wasThere }: { readonly wasThere: boolean }): Promise<void> {
    await this.db.sql(
      `
      with come as (
        delete from $schema.image_fetch where :wasThere and id = (
          select id from $schema.image_fetch where handle = :handle and (is_abandoned or claimed_until <= :now)
          order by not is_abandoned, may_come_until limit 1)
        returning id)
      delete from $schema.image_to_remove
      where handle = :handle and is_being_removed and not exists (
        select from $schema.image_fetch f
        where f.handle = :handle and f.may_come_until > :now and f.id not in (select id from come))`,
      { handle, wasThere, now: this.clock.now() }
    )
  }

  #after(ms: number): Date {
    return new Date(this.clock.now().getTime() + ms)
  }
}

const columns = 'handle, holder, repository, digest, layers'
/** Of an image to remove, `r`: a fetch of it is under way. */
const claims =
  'select from $schema.image_fetch f where f.handle = r.handle and not f.is_abandoned and f.claimed_until > :now'
