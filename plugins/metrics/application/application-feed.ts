import type { Clock, Log } from 'busbar/sdk'
import type { ApplicationSamples } from './application-samples.js'
import { type ApplicationStore, type RunningApplication, runningOf } from './application-store.js'
import type { ContainerUsage } from './container-usage.js'

const everyMs = 2000

/** One who follows an application. */
interface ApplicationFollower {
  /** Told about every two seconds while it runs, and nothing while it does not. */
  readonly give: (usage: ContainerUsage) => void
  /** Called once, when there is no such application any more. */
  readonly end: () => void
}

interface ApplicationFeedParts {
  readonly store: ApplicationStore
  readonly samples: Pick<ApplicationSamples, 'usage'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Measures the applications that are followed every two seconds: one timer and one statement for all of them, and none while
 * nobody follows any.
 */
export class ApplicationFeed {
  readonly #followers = new Map<string, Set<ApplicationFollower>>()
  /** A slow engine is not asked again before it has answered. */
  readonly #underWay = new Set<string>()
  /** Since the last look: they are not to wait for the next one. */
  #fresh = new Set<string>()
  #stop: (() => void) | undefined
  #isFailing = false

  constructor(private readonly parts: ApplicationFeedParts) {}

  get followed(): number {
    return this.#followers.size
  }

  /** Returns how to stop. */
  follow(applicationId: string, follower: ApplicationFollower): () => void {
    // Of its own: one that follows twice is told twice.
    const own = { ...follower }
    const followers = this.#followers.get(applicationId)
    if (followers === undefined) {
      this.#followers.set(applicationId, new Set([own]))
      this.#lookSoon(applicationId)
    } else followers.add(own)
    this.#stop ??= this.parts.clock.every(everyMs, async () => {
      await this.#look([...this.#followers.keys()])
    })
    return () => {
      const here = this.#followers.get(applicationId)
      if (here?.delete(own) !== true || here.size > 0) return
      this.#remove(applicationId)
    }
  }

  #remove(applicationId: string): void {
    this.#followers.delete(applicationId)
    if (this.#followers.size > 0) return
    this.#stop?.()
    this.#stop = undefined
  }

  /** A client may come to follow hundreds at once. */
  #lookSoon(applicationId: string): void {
    this.#fresh.add(applicationId)
    if (this.#fresh.size > 1) return
    setImmediate(() => {
      const ids = [...this.#fresh]
      this.#fresh = new Set()
      void this.#look(ids)
    })
  }

  /** Never rejects; does not wait for the engine. */
  async #look(ids: readonly string[]): Promise<void> {
    const rows = await this.parts.store.some(ids).catch((error: unknown) => {
      this.#noteFailure(error)
    })
    if (rows === undefined) return
    const found = new Map(rows.map(row => [row.id, row]))
    for (const id of ids) {
      const row = found.get(id)
      if (row === undefined) this.#end(id)
      else {
        const application = runningOf(row)
        if (application !== undefined) void this.#measure(application)
      }
    }
  }

  #end(applicationId: string): void {
    const followers = this.#followers.get(applicationId)
    if (followers === undefined) return
    this.#remove(applicationId)
    for (const { end } of followers) end()
  }

  /** Never rejects. */
  async #measure(application: RunningApplication): Promise<void> {
    const { id } = application
    if (this.#underWay.has(id)) return
    this.#underWay.add(id)
    try {
      const usage = await this.parts.samples.usage(application)
      if (this.#isFailing) this.parts.log.info('applications are measured again')
      this.#isFailing = false
      if (usage !== undefined) for (const { give } of this.#followers.get(id) ?? []) give(usage)
    } catch (error) {
      this.#noteFailure(error)
    } finally {
      this.#underWay.delete(id)
    }
  }

  #noteFailure(error: unknown): void {
    if (!this.#isFailing) this.parts.log.warn({ err: error }, 'applications cannot be measured for now')
    this.#isFailing = true
  }
}
