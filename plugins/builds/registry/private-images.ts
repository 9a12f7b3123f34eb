import type { ContainerRuntime } from 'busbar/api/runtime-docker'
import type { Clock, Database, Log } from 'busbar/sdk'
import { findByName, fullRepository } from './local-image.js'

const sweepEveryMs = 3600_000

/**
 * Images that were pulled with an account of their registry. The engine hands out what it holds to
 * everybody; the platform to those alone whom the registry has handed it to.
 */
export interface PrivateImages {
  /** The registry has handed it out to this application: because of its account, or to everybody. */
  note(imageId: string, applicationId: string, hasAccount: boolean): Promise<void>
  /** True when an account was needed for it, and this application has never been handed it. */
  isOfOthers(imageId: string, applicationId: string): Promise<boolean>
  /**
   * A pull with an account begins. Whatever comes of it, a crash too, the engine may hold the image under its name
   * before anybody could note whose it is.
   */
  beginPull(pull: PrivatePull): Promise<void>
  /** What it has brought has been noted. */
  endPull(pull: PrivatePull): Promise<void>
  /**
   * True while another application pulls from the repository of this name with an account. To be asked before
   * `isOfOthers`: a pull that ends in between has been noted by then.
   */
  isBeingPulled(name: string, applicationId: string): Promise<boolean>
}

interface PrivatePull {
  readonly name: string
  readonly applicationId: string
  /** What the engine held under the name before; null: nothing. */
  readonly beforeId: string | null
}

export class PrivateImageStore implements PrivateImages {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, 'now'>
  ) {}

  async note(imageId: string, applicationId: string, hasAccount: boolean): Promise<void> {
    await this.db.sql(
      `
      insert into $schema.private_image (image_id, application_id) select :imageId, :applicationId
      where :hasAccount or exists (select from $schema.private_image where image_id = :imageId)
      on conflict do nothing`,
      { imageId, applicationId, hasAccount }
    )
  }

  async isOfOthers(imageId: string, applicationId: string): Promise<boolean> {
    const rows = await this.db.sql<{ application_id: string }>(
      'select application_id from $schema.private_image where image_id = ?',
      [imageId]
    )
    return rows.length > 0 && !rows.some(row => row.application_id === applicationId)
  }

  async beginPull({ name, applicationId, beforeId }: PrivatePull): Promise<void> {
    // What a pull that was cut off has found stays: what it brought has not been noted.
    await this.db.sql(
      `
      insert into $schema.private_pull (name, application_id, repository, before_id, begun_at)
      values (:name, :applicationId, :repository, :beforeId, :now)
      on conflict (name, application_id) do update set begun_at = excluded.begun_at`,
      { name, applicationId, repository: fullRepository(name), beforeId, now: this.clock.now() }
    )
  }

  async endPull({ name, applicationId }: PrivatePull): Promise<void> {
    await this.db.sql('delete from $schema.private_pull where name = ? and application_id = ?', [
      name,
      applicationId
    ])
  }

  async isBeingPulled(name: string, applicationId: string): Promise<boolean> {
    const rows = await this.db.sql(
      'select from $schema.private_pull where repository = ? and application_id <> ? limit 1',
      [fullRepository(name), applicationId]
    )
    return rows.length > 0
  }

  /** Pulls that were cut off: they began before, and nobody has ended them. */
  async pullsBefore(time: Date): Promise<readonly PrivatePull[]> {
    return await this.db.sql<PrivatePull>(
      'select name, application_id as "applicationId", before_id as "beforeId" from $schema.private_pull where begun_at < ?',
      [time]
    )
  }

  /** Forgets those that are not on the engine any more. */
  async forgetGone(runtime: Pick<ContainerRuntime, 'image'>): Promise<void> {
    const rows = await this.db.sql<{ image_id: string }>(
      'select distinct image_id from $schema.private_image'
    )
    for (const { image_id: id } of rows) {
      if ((await runtime.image(id)) === undefined)
        await this.db.sql('delete from $schema.private_image where image_id = ?', [id])
    }
  }
}

/** Notes what a pull with an account has left under its name, however it ended. */
export async function settlePull(
  {
    runtime,
    privateImages
  }: { readonly runtime: Pick<ContainerRuntime, 'image'>; readonly privateImages: PrivateImages },
  pull: PrivatePull
): Promise<void> {
  const image = await findByName(runtime, pull.name)
  if (image !== undefined && image.id !== pull.beforeId)
    await privateImages.note(image.id, pull.applicationId, true)
  await privateImages.endPull(pull)
}

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
  while (!signal.aborted) {
    const sweep = async (): Promise<void> => {
      for (const pull of await store.pullsBefore(new Date(clock.now().getTime() - longestPullMs)))
        await settlePull({ runtime, privateImages: store }, pull)
      await store.forgetGone(runtime)
    }
    await sweep().catch((error: unknown) =>
      log.debug({ err: error }, 'whether private images are still there could not be looked up')
    )
    await clock.sleep(sweepEveryMs, signal).catch(() => {})
  }
}
