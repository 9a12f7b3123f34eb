import type { ContainerRuntime } from 'busbar/api/runtime-docker'
import type { Clock, Database, Log } from 'busbar/sdk'

const sweepEveryMs = 24 * 3600_000

/**
 * Images that were pulled with an account of their registry. The engine hands out what it holds to
 * everybody; the platform to those alone whom the registry has handed it to.
 */
export interface PrivateImages {
  /** The registry has handed it out to this application: because of its account, or to everybody. */
  note(imageId: string, applicationId: string, hasAccount: boolean): Promise<void>
  /** True when an account was needed for it, and this application has never been handed it. */
  isOfOthers(imageId: string, applicationId: string): Promise<boolean>
}

export class PrivateImageStore implements PrivateImages {
  constructor(private readonly db: Database) {}

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

/** Once a day, for as long as one process lives. */
export async function sweepPrivateImages(
  {
    store,
    runtime,
    clock,
    log
  }: {
    readonly store: PrivateImageStore
    readonly runtime: Pick<ContainerRuntime, 'image'>
    readonly clock: Clock
    readonly log: Log
  },
  signal: AbortSignal
): Promise<void> {
  while (!signal.aborted) {
    await store
      .forgetGone(runtime)
      .catch((error: unknown) =>
        log.debug({ err: error }, 'whether private images are still there could not be looked up')
      )
    await clock.sleep(sweepEveryMs, signal).catch(() => {})
  }
}
