import { createHash, randomUUID } from 'node:crypto'
import { loadedPrefix } from 'busbar/api/images'
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
/** What another image is made of goes after that one. */
const continuedMs = hourMs

/**
 * How long an image stays after it was last asked for, when no application keeps it. A base is asked for by name again and
 * again; what containers are made of is kept while one can be, and this is for the time until a deployment has noted it.
 */
const keepMs: Readonly<Record<Purpose, number>> = { base: 7 * 24 * hourMs, container: hourMs / 6 }

/** Which images registries have handed out, and to whom. What is not here was handed out to no application. */
export interface FetchedImages {
  /**
   * What the name stood for when it was last fetched for this application, or for everybody. `deploymentId`: claimed for it
   * in the same moment, if its image is being prepared (`ImageClaims`).
   */
  find(
    applicationId: string,
    name: string,
    purpose: Purpose,
    deploymentId?: string
  ): Promise<FetchedImage | undefined>
  /** Those that begin with this layer and that the holder has been handed, or everybody. */
  withFirstLayer(holder: Holder, layer: string): Promise<readonly FetchedImage[]>
  /**
   * True when what has one of these names on the engine was handed to the application, or to everybody. `deploymentId`:
   * claimed for it, as by `find`.
   */
  isOpenTo(applicationId: string, names: readonly string[], deploymentId?: string): Promise<boolean>
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
  /** Whether what has this name is on its way from the engine: what a fetch that has begun since finds of it is about to be gone. */
  isBeingRemoved(handle: string): Promise<boolean>
  /** Whether the engine is still at work on what a fetch for the application was abandoned with. */
  isLoading(applicationId: string): Promise<boolean>
  /**
   * It has come: from now on the holder may use it by its digest, and by the name that it was fetched by, and the deployment
   * that it was fetched for has claimed it.
   */
  settle(image: FetchedImage, fetch: SettledFetch): Promise<void>
  /** The application needs these for its containers, and no others any more. What is no name with a digest is ignored. */
  keep(applicationId: string, names: readonly string[]): Promise<void>
  /** What applications keep for their containers. */
  kept(): Promise<
    ReadonlyArray<Pick<FetchedImage, 'handle' | 'repository' | 'digest'> & { readonly applicationId: string }>
  >
  /** The application needs this one for its containers no more. */
  drop(applicationId: string, name: string): Promise<void>
  /** Forgets the application; what it alone was handed is to go now. */
  forget(applicationId: string): Promise<void>
  /**
   * An image that is to go from the engine: no living fetch and no deployment that is being prepared claims it, and no
   * application keeps it or its time is over. What it stood for is forgotten before, so no application is given it. It is due again in
   * a minute unless it is `removed`. `isShort`: no room is left on a disk, so that all goes that is not claimed or kept, what
   * was used longest ago first, and what could not be removed just now is tried again. None of `tried`.
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
  /**
   * It could not be removed, and its removal has ended. `isContinued`: another image is made of it, so that it is looked
   * for again in an hour, or when a disk is short.
   */
  stays(handle: string, options?: { readonly isContinued: true }): Promise<void>
}

/** A fetch that is under way. */
export interface BegunFetch {
  readonly id: string
  /** The same for all who fetch it for this holder, at once or one after the other. */
  readonly handle: string
}

/** How long a fetch stays claimed by a process that does not say any more that it is under way: it has died. */
export const claimMs = 60_000
/** Of three, one may be late, and one may be lost. */
export const renewEveryMs = claimMs / 4

interface SettledFetch {
  /** Of the `BegunFetch`. */
  readonly fetchId: string
  /** What it was fetched by. */
  readonly name: string
  /** Before the registry said what the name stands for: a slow fetch takes a name back to nothing older. */
  readonly askedAt: Date
  readonly applicationId: string
  readonly deploymentId: string
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

  async find(
    applicationId: string,
    name: string,
    purpose: Purpose,
    deploymentId = ''
  ): Promise<FetchedImage | undefined> {
    // A removal locks the row before it looks for claims: one of the two comes first.
    const [found] = await this.db.sql<FetchedImage>(
      `
      with found as (
        update $schema.fetched_image set keep_until = greatest(keep_until, :until), used_at = :now
        where handle = (
          select handle from $schema.fetched_name
          where holder in ('', :applicationId) and repository = :repository and version = :version
          order by fetched_at desc limit 1)
        returning ${columns}),
      claim as (${claiming})
      select ${columns} from found`,
      {
        applicationId,
        deploymentId,
        repository: fullRepository(name),
        version: versionOf(name),
        now: this.clock.now(),
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

  async isOpenTo(applicationId: string, names: readonly string[], deploymentId = ''): Promise<boolean> {
    const rows = await this.db.sql(
      `
      with found as (
        select handle from $schema.fetched_image
        where holder in ('', :applicationId) and handle = any(:names) for key share),
      claim as (${claiming})
      select handle from found limit 1`,
      { applicationId, deploymentId, names: [...names] }
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

  async isBeingRemoved(handle: string): Promise<boolean> {
    const rows = await this.db.sql(
      'select from $schema.image_to_remove where handle = :handle and removing_until > :now',
      { handle, now: this.clock.now() }
    )
    return rows.length > 0
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
    { fetchId, name, askedAt, applicationId, deploymentId, purpose }: SettledFetch
  ): Promise<void> {
    await this.db.sql(
      `
      with settled as (delete from $schema.image_to_remove where handle = :handle),
      claim as (delete from $schema.image_fetch where id = :fetchId),
      found as (
        insert into $schema.fetched_image (handle, holder, repository, digest, layers, keep_until, used_at)
        values (:handle, :holder, :repository, :digest, cast(:layers as text[]), :until, :now)
        on conflict (handle) do update set
          keep_until = greatest(fetched_image.keep_until, excluded.keep_until), used_at = excluded.used_at
        returning handle),
      own_claim as (${claiming}),
      use as (
        insert into $schema.fetched_image_use (application_id, handle)
        select :applicationId, handle from found where :purpose = 'container'
        on conflict do nothing)
      insert into $schema.fetched_name (holder, repository, version, handle, fetched_at)
      select distinct :holder, :repository, unnest(cast(:versions as text[])), handle, cast(:askedAt as timestamptz) from found
      on conflict (holder, repository, version) do update set handle = excluded.handle, fetched_at = excluded.fetched_at
      where fetched_name.fetched_at <= excluded.fetched_at`,
      {
        ...image,
        fetchId,
        layers: [...layers],
        versions: [versionOf(name), image.digest],
        applicationId,
        deploymentId,
        purpose,
        askedAt,
        now: this.clock.now(),
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
        join $schema.fetched_image i on i.handle = n.handle
        where n.holder in ('', :applicationId)
        for key share of i),
      dropped as (
        delete from $schema.fetched_image_use
        where application_id = :applicationId and handle not in (select handle from kept))
      insert into $schema.fetched_image_use (application_id, handle)
      select distinct :applicationId, handle from kept
      on conflict do nothing`,
      { applicationId, repositories: pinned.map(fullRepository), versions: pinned.map(versionOf) }
    )
  }

  async kept() {
    return await this.db.sql<
      Pick<FetchedImage, 'handle' | 'repository' | 'digest'> & { readonly applicationId: string }
    >(
      `
      select u.application_id as "applicationId", i.handle, i.repository, i.digest
      from $schema.fetched_image_use u join $schema.fetched_image i using (handle)`
    )
  }

  async drop(applicationId: string, name: string): Promise<void> {
    await this.db.sql(
      `
      delete from $schema.fetched_image_use
      where application_id = :applicationId and handle in (
        select handle from $schema.fetched_name
        where holder in ('', :applicationId) and repository = :repository and version = :version)`,
      { applicationId, repository: fullRepository(name), version: versionOf(name) }
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
      'delete from $schema.image_fetch where may_come_until <= :now and claimed_until <= :now',
      { now }
    )
    await this.#forgetUnused(isShort, now)
    // A fetch of what is held already was cut off: there is nothing to remove.
    await this.db.sql(
      `
      delete from $schema.image_to_remove r
      where due_at <= :now and exists (select from $schema.fetched_image i where i.handle = r.handle)
        and not exists (${fetches('r')})`,
      { now }
    )
    const [next] = await this.db.sql<{ handle: string }>(
      `
      update $schema.image_to_remove set due_at = :again, removing_until = :again, is_being_removed = true
      where handle = (
        select handle from $schema.image_to_remove r
        where (due_at <= :now or :isShort) and handle <> all(:tried) and coalesce(removing_until, :now) <= :now
          and not exists (${fetches('r')}) and not exists (${claims('r')})
          and not exists (select from $schema.fetched_image i where i.handle = r.handle)
        order by used_at nulls first, due_at limit 1 for update skip locked)
      returning handle`,
      { now, again: this.#after(retryMs), isShort, tried: [...tried] }
    )
    return next?.handle
  }

  /** What is neither kept nor claimed, and had its time, is to go: due at `now`, so that it is given out in the same round. */
  async #forgetUnused(isShort: boolean, now: Date): Promise<void> {
    const isUnused = `(keep_until < :now or :isShort)
      and not exists (select from $schema.fetched_image_use u where u.handle = i.handle) and not exists (${claims('i')})`
    await this.db.transaction(async tx => {
      // A claim or a use locks the row first: once it is locked here, the next statement sees them.
      const unused = await this.db.sql<{ handle: string }>(
        `select handle from $schema.fetched_image i where ${isUnused} order by handle for update skip locked`,
        { now, isShort },
        tx
      )
      if (unused.length === 0) return
      await this.db.sql(
        `
        with unused as (
          delete from $schema.fetched_image i where handle = any(:handles) and ${isUnused} returning handle, used_at)
        insert into $schema.image_to_remove (handle, due_at, used_at)
        select handle, cast(:now as timestamptz), used_at from unused
        on conflict (handle) do update set due_at = excluded.due_at, used_at = excluded.used_at`,
        { now, isShort, handles: unused.map(({ handle }) => handle) },
        tx
      )
    })
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
    await this.db.sql('update $schema.image_to_remove set removing_until = null where handle = ?', [handle])
  }

  async stays(handle: string, options?: { readonly isContinued: true }): Promise<void> {
    await this.db.sql(
      `
      update $schema.image_to_remove set removing_until = null, due_at = greatest(due_at, :again)
      where handle = :handle`,
      { handle, again: this.#after(options === undefined ? 0 : continuedMs) }
    )
  }

  #after(ms: number): Date {
    return new Date(this.clock.now().getTime() + ms)
  }
}

const columns = 'handle, holder, repository, digest, layers'
/** Fetches of an image that are under way. */
const fetches = (image: 'r'): string =>
  `select from $schema.image_fetch f where f.handle = ${image}.handle and not f.is_abandoned and f.claimed_until > :now`
/** Deployments that are being prepared and need an image. */
const claims = (image: 'r' | 'i'): string => `
  select from $schema.image_claim c join $schema.preparation p using (deployment_id)
  where c.handle = ${image}.handle and p.claimed_until > :now`
/** Of the image that was `found`, for a deployment that is being prepared. */
const claiming = `
  insert into $schema.image_claim (deployment_id, handle)
  select p.deployment_id, found.handle from found join $schema.preparation p on p.deployment_id = :deploymentId
  on conflict do nothing`
