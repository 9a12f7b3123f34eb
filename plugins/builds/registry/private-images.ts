import type { ContainerRuntime, ImageInfo } from 'busbar/api/runtime-docker'
import { type Clock, type Database, type Log, runRepeatedly } from 'busbar/sdk'
import { chainIds } from './layer-chain.js'
import type { LayerProof } from './layer-proof.js'
import { findByName, fullRepository, isSameName } from './local-image.js'

const sweepEveryMs = 3600_000

/**
 * Images that were pulled with an account of their registry. The engine hands out what it holds to
 * everybody; the platform to those alone whom the registry has handed it to.
 */
export interface PrivateImages {
  /** It was handed out to this application, and is private or has been. */
  note(handed: HandedImage): Promise<void>
  /** True when an account was needed for it, and this application has never been handed it. */
  isOfOthers(imageId: string, applicationId: string): Promise<boolean>
  /** True when it has been handed out from this repository: whom that lets in may have it. */
  isFrom(imageId: string, repository: string): Promise<boolean>
  /** Which of these (`chainIds`) came with an account of another application, and have not been shown to this one. */
  layersOfOthers(chainIds: readonly string[], applicationId: string): Promise<readonly string[]>
  /** This application may have them; null: everybody. */
  noteLayers(chainIds: readonly string[], applicationId: string | null): Promise<void>
  readonly proof: LayerProof
  /**
   * A pull with an account begins. Whatever comes of it, a crash too, the engine may hold the image under its name
   * before anybody could note whose it is.
   */
  beginPull(pull: PrivatePull): Promise<void>
  /** What it has brought has been noted. */
  endPull(pull: PrivatePull): Promise<void>
  /** Those with an account. To be asked before `isOfOthers`: one that ends in between has been noted by then. */
  pullsOfOthers(applicationId: string): Promise<readonly PrivatePull[]>
  /**
   * True while another application pulls with an account what may have put this image under this name. To be asked
   * before `isOfOthers`, too.
   */
  isBeingPulled(name: string, imageId: string, applicationId: string): Promise<boolean>
}

/** What a registry has handed out. */
interface HandedImage {
  readonly imageId: string
  readonly applicationId: string
  /** From where, as `fullRepository` writes it; null: that has not been judged, and lets in nobody else. */
  readonly repository: string | null
  /** It came by this pull, which needed an account. Unless it is private, nothing is noted of who may have it. */
  readonly isPrivate: boolean
  /** The repository has shown that it has it; so it has where the image is private, whoever was let in. */
  readonly isFrom?: boolean
}

export interface PrivatePull {
  readonly name: string
  readonly applicationId: string
  /** Of its name, as `fullRepository` writes it. */
  readonly repository: string
  /** What the engine held under the name before; null: nothing. */
  readonly beforeId: string | null
}

export class PrivateImageStore implements PrivateImages {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, 'now'>,
    readonly proof: LayerProof
  ) {}

  async note({ isFrom = false, ...handed }: HandedImage): Promise<void> {
    await this.db.sql(
      `
      with noted as (
        insert into $schema.private_image (image_id, application_id) select :imageId, :applicationId
        where :isPrivate or exists (select from $schema.private_image where image_id = :imageId)
        on conflict do nothing
      )
      insert into $schema.private_image_repository (image_id, repository) select :imageId, cast(:repository as text)
      where cast(:repository as text) is not null and
        (:isPrivate or :isFrom or exists (select from $schema.private_image where image_id = :imageId))
      on conflict do nothing`,
      { ...handed, isFrom }
    )
  }

  async isOfOthers(imageId: string, applicationId: string): Promise<boolean> {
    const rows = await this.db.sql<{ application_id: string }>(
      'select application_id from $schema.private_image where image_id = ?',
      [imageId]
    )
    return rows.length > 0 && !rows.some(row => row.application_id === applicationId)
  }

  async isFrom(imageId: string, repository: string): Promise<boolean> {
    const rows = await this.db.sql(
      'select from $schema.private_image_repository where image_id = ? and repository = ?',
      [imageId, repository]
    )
    return rows.length > 0
  }

  async layersOfOthers(chainIds: readonly string[], applicationId: string): Promise<readonly string[]> {
    if (chainIds.length === 0) return []
    const rows = await this.db.sql<{ chain_id: string }>(
      `
      select chain_id from $schema.private_layer where chain_id = any(:chainIds)
      group by chain_id having not bool_or(holder in ('', :applicationId))`,
      { chainIds, applicationId }
    )
    return rows.map(row => row.chain_id)
  }

  async noteLayers(chainIds: readonly string[], applicationId: string | null): Promise<void> {
    if (chainIds.length === 0) return
    await this.db.sql(
      `
      insert into $schema.private_layer (chain_id, holder)
      select distinct unnest(cast(:chainIds as text[])), cast(:holder as text) on conflict do nothing`,
      { chainIds, holder: applicationId ?? '' }
    )
  }

  async beginPull({ name, applicationId, repository, beforeId }: PrivatePull): Promise<void> {
    // What a pull that was cut off has found stays: what it brought has not been noted.
    await this.db.sql(
      `
      insert into $schema.private_pull (name, application_id, repository, before_id, begun_at)
      values (:name, :applicationId, :repository, :beforeId, :now)
      on conflict (name, application_id) do update set begun_at = excluded.begun_at`,
      { name, applicationId, repository, beforeId, now: this.clock.now() }
    )
  }

  async endPull({ name, applicationId }: PrivatePull): Promise<void> {
    await this.db.sql('delete from $schema.private_pull where name = ? and application_id = ?', [
      name,
      applicationId
    ])
  }

  async pullsOfOthers(applicationId: string): Promise<readonly PrivatePull[]> {
    return await this.db.sql<PrivatePull>(
      `select ${pullColumns} from $schema.private_pull where application_id <> ?`,
      [applicationId]
    )
  }

  async isBeingPulled(name: string, imageId: string, applicationId: string): Promise<boolean> {
    const pulls = await this.pullsOfOthers(applicationId)
    return pulls.some(pull => pull.beforeId !== imageId && mayMean(pull, name))
  }

  /** Pulls that were cut off: they began before, and nobody has ended them. */
  async pullsBefore(time: Date): Promise<readonly PrivatePull[]> {
    return await this.db.sql<PrivatePull>(
      `select ${pullColumns} from $schema.private_pull where begun_at < ?`,
      [time]
    )
  }

  /** Forgets those that are not on the engine any more. */
  async forgetGone(runtime: Pick<ContainerRuntime, 'image'>): Promise<void> {
    const rows = await this.db.sql<{ image_id: string }>(
      'select image_id from $schema.private_image union select image_id from $schema.private_image_repository'
    )
    for (const { image_id: id } of rows) {
      if ((await runtime.image(id)) === undefined)
        await this.db.sql(
          `
          with forgotten as (delete from $schema.private_image where image_id = :id)
          delete from $schema.private_image_repository where image_id = :id`,
          { id }
        )
    }
  }
}

const pullColumns = 'name, application_id as "applicationId", repository, before_id as "beforeId"'

/** True when a pull of the one name may change what the other means: a digest may be that of any tag. */
function mayMean({ name: pulled, repository }: PrivatePull, name: string): boolean {
  if (fullRepository(name) !== repository) return false
  if (name.includes('@')) return !pulled.includes('@') || digestOf(pulled) === digestOf(name)
  return isSameName(pulled, name)
}

const digestOf = (name: string): string => name.slice(name.indexOf('@') + 1)

/** Notes what a pull with an account has left under its name, however it ended, when that came by it, and which layers did (`broughtBy`). */
export async function settlePull(
  {
    runtime,
    privateImages
  }: { readonly runtime: Pick<ContainerRuntime, 'image'>; readonly privateImages: PrivateImages },
  pull: PrivatePull,
  broughtBy: (image: ImageInfo) => readonly string[] | undefined = image =>
    hasNoOtherName(image, pull) ? chainIds(image.layers ?? []) : undefined
): Promise<void> {
  const { applicationId } = pull
  const image = await findByName(runtime, pull.name)
  const brought = image === undefined || image.id === pull.beforeId ? undefined : broughtBy(image)
  // What is others', a layer too, does not become its own by this: only a pull that ended well was judged.
  if (
    image !== undefined &&
    brought !== undefined &&
    !(await privateImages.isOfOthers(image.id, applicationId))
  ) {
    const ofOthers = new Set(await privateImages.layersOfOthers(brought, applicationId))
    await privateImages.noteLayers(
      brought.filter(chain => !ofOthers.has(chain)),
      applicationId
    )
    await privateImages.note({ imageId: image.id, applicationId, repository: null, isPrivate: true })
  }
  await privateImages.endPull(pull)
}

/** When nobody knows any more how it came: what has a name of another repository was there before. */
const hasNoOtherName = ({ repoTags = [], repoDigests }: ImageInfo, { repository }: PrivatePull): boolean =>
  [...repoTags, ...repoDigests].every(name => fullRepository(name) === repository)

/** Once an hour, for as long as one process lives. */
export async function sweepPrivateImages(
  {
    store,
    runtime,
    clock,
    log,
    longestPullMs
  }: {
    readonly store: PrivateImageStore
    readonly runtime: Pick<ContainerRuntime, 'image'>
    readonly clock: Clock
    readonly log: Log
    readonly longestPullMs: number
  },
  signal: AbortSignal
): Promise<void> {
  await runRepeatedly(
    async () => {
      for (const pull of await store.pullsBefore(new Date(clock.now().getTime() - longestPullMs)))
        await settlePull({ runtime, privateImages: store }, pull)
      await store.forgetGone(runtime)
    },
    {
      everyMs: sweepEveryMs,
      clock,
      signal,
      onError: error =>
        log.debug({ err: error }, 'whether private images are still there could not be looked up')
    }
  )
}
