import { applicationTable } from 'busbar/api/applications'
import { projectTable } from 'busbar/api/projects'
import { type Clock, type Database, type Log, pause } from 'busbar/sdk'
import type { Holding } from '../disk/largest-holder.js'
import { claimMs, renewEveryMs } from './fetched-images.js'

/** A process that was held up, or cut off from the database, may come back to what it was at. */
const forgetAfterMs = 24 * 3600_000

/** A deployment whose image is being prepared. */
interface Preparation {
  readonly applicationId: string
  readonly deploymentId: string
  /** What it has claimed stays claimed for `claimMs` when it was made: until the deployment has noted it. */
  readonly isNotedLater?: boolean
}

interface ClaimParts {
  readonly db: Database
  readonly clock: Pick<Clock, 'now' | 'sleep'>
  readonly log: Log
  /** Called when something may have become unneeded. */
  readonly onEnd: () => void
}

/**
 * Which deployments are having an image prepared. What they claim meanwhile (`FetchedImages`) stays; when one
 * has ended, or its process has died, what it had claimed is a cache.
 */
export class ImageClaims {
  /** Those of this process. */
  readonly #own = new Set<string>()

  constructor(private readonly parts: ClaimParts) {}

  /**
   * Runs what needs images for a deployment; it may claim them from the beginning to the end of that. It gets the id of the
   * user whose project it is in; an application that is gone stands for itself.
   */
  async during<T>(
    { deploymentId, applicationId, isNotedLater }: Preparation,
    run: (ownerId: string) => Promise<T>
  ): Promise<T> {
    const { db, log, onEnd } = this.parts
    const over = new AbortController()
    let isMade = false
    this.#own.add(deploymentId)
    try {
      const [owner] = await db.sql<{ readonly id: string }>(
        `
        with claimed as (
          insert into $schema.preparation (deployment_id, application_id, claimed_until)
          values (:deploymentId, :applicationId, :until)
          on conflict (deployment_id) do update set claimed_until = excluded.claimed_until)
        select cast(o.user_id as text) as id
        from ${applicationTable.name} a join ${projectTable.name} o on o.id = a.project_id
        where cast(a.id as text) = :applicationId`,
        { deploymentId, applicationId, until: this.#until() }
      )
      void this.#keepAlive(over.signal)
      const made = await run(owner?.id ?? applicationId)
      isMade = true
      return made
    } finally {
      over.abort()
      this.#own.delete(deploymentId)
      const lapses = isMade && isNotedLater === true
      await (lapses ? this.#renew([deploymentId]) : this.#end(deploymentId)).catch((error: unknown) =>
        log.debug({ err: error, deploymentId }, 'the claims of a deployment stay until they lapse')
      )
      onEnd()
    }
  }

  /**
   * Whether other preparations have claimed what neither this one nor an application needs, or fetches of other applications are
   * under way: what they hold may be a cache in a moment.
   */
  async othersHold(deploymentId: string): Promise<boolean> {
    const rows = await this.parts.db.sql(
      `
      select from $schema.image_claim c join $schema.preparation p using (deployment_id)
      where p.claimed_until > :now and deployment_id <> :deploymentId
        and not exists (select from $schema.fetched_image_use u where u.handle = c.handle)
        and not exists (
          select from $schema.image_claim own where own.deployment_id = :deploymentId and own.handle = c.handle)
      union all
      select from $schema.image_fetch f
      where f.claimed_until > :now and f.application_id not in (
        select application_id from $schema.preparation where deployment_id = :deploymentId)
      limit 1`,
      { deploymentId, now: this.parts.clock.now() }
    )
    return rows.length > 0
  }

  /** What each deployment that is being prepared, by whatever process, keeps on the engine. */
  async holdings(): Promise<ReadonlyArray<Omit<Holding, 'writtenBytes'>>> {
    return await this.parts.db.sql<Omit<Holding, 'writtenBytes'>>(
      `
      select p.deployment_id as "deploymentId", coalesce(cast(o.user_id as text), p.application_id) as "ownerId",
        array(
          select c.handle from $schema.image_claim c where c.deployment_id = p.deployment_id
            and not exists (select from $schema.fetched_image_use u where u.handle = c.handle)) as handles
      from $schema.preparation p
      left join ${applicationTable.name} a on cast(a.id as text) = p.application_id
      left join ${projectTable.name} o on o.id = a.project_id
      where p.claimed_until > ?`,
      [this.parts.clock.now()]
    )
  }

  /** Whether another image is being prepared, by whatever process. */
  async othersAreUnderWay(deploymentId: string): Promise<boolean> {
    const rows = await this.parts.db.sql(
      'select from $schema.preparation where claimed_until > :now and deployment_id <> :deploymentId limit 1',
      { deploymentId, now: this.parts.clock.now() }
    )
    return rows.length > 0
  }

  /** The applications that an image is being prepared for by other processes. */
  async elsewhere(): Promise<ReadonlySet<string>> {
    const rows = await this.parts.db.sql<{ application_id: string }>(
      'select distinct application_id from $schema.preparation where claimed_until > :now and deployment_id <> all(:own)',
      { now: this.parts.clock.now(), own: [...this.#own] }
    )
    return new Set(rows.map(row => row.application_id))
  }

  /** Says that what this process is at is under way, also after it was held up; forgets what was left long ago. */
  async renew(): Promise<void> {
    const { db, clock } = this.parts
    await this.#renew([...this.#own])
    await db.sql('delete from $schema.preparation where claimed_until < ?', [
      new Date(clock.now().getTime() - forgetAfterMs)
    ])
  }

  async #keepAlive(over: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    for (;;) {
      await pause(clock, renewEveryMs, over)
      if (over.aborted) return
      await this.#renew([...this.#own]).catch((error: unknown) =>
        log.debug({ err: error }, 'claims of images could not be renewed')
      )
    }
  }

  async #renew(deploymentIds: readonly string[]): Promise<void> {
    if (deploymentIds.length === 0) return
    await this.parts.db.sql(
      'update $schema.preparation set claimed_until = :until where deployment_id = any(:deploymentIds)',
      { deploymentIds: [...deploymentIds], until: this.#until() }
    )
  }

  async #end(deploymentId: string): Promise<void> {
    await this.parts.db.sql('delete from $schema.preparation where deployment_id = ?', [deploymentId])
  }

  #until(): Date {
    return new Date(this.parts.clock.now().getTime() + claimMs)
  }
}
