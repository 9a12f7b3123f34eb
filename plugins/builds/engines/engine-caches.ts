import type { Log } from 'busbar/sdk'
import type { EngineRecords } from './engine-store.js'
import type { ProjectEngines } from './project-engines.js'

interface EngineCachesParts {
  readonly engines: Pick<ProjectEngines, 'sizes' | 'removeUnused' | 'trim'>
  readonly records: Pick<EngineRecords, 'all' | 'isBusy'>
  /** What one may keep of what its builds do not use. */
  readonly cacheBytes: number
  readonly log: Log
}

/** What build engines keep for the next builds, over all projects. What a build uses now is left alone. */
export class EngineCaches {
  constructor(private readonly parts: EngineCachesParts) {}

  /**
   * Has each keep what it may, and removes those that have not been used for longest, until the others have no more than so many
   * bytes together.
   */
  async trim(maxBytes: number): Promise<void> {
    const { engines, cacheBytes } = this.parts
    const { unused, busy } = await this.#known()
    for (const projectId of busy)
      await this.#try(projectId, async () => await engines.trim(projectId, cacheBytes))
    if (unused.length === 0) return
    const sizes = await engines.sizes()
    let bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0)
    for (const projectId of unused) {
      if (bytes <= maxBytes) return
      if (await this.#remove(projectId)) bytes -= sizes.get(projectId) ?? 0
    }
  }

  /** Removes all of them, and of those that are in use what no build needs: a disk is short. */
  async clear(): Promise<void> {
    const { unused, busy } = await this.#known()
    for (const projectId of unused) await this.#remove(projectId)
    for (const projectId of busy)
      await this.#try(projectId, async () => await this.parts.engines.trim(projectId, 0))
  }

  /** Whether it is gone. */
  async #remove(projectId: string): Promise<boolean> {
    const { engines, records } = this.parts
    let isGone = false
    await this.#try(projectId, async () => {
      // Those before it may have taken long.
      if (!(await records.isBusy(projectId))) isGone = await engines.removeUnused(projectId)
    })
    return isGone
  }

  /** One that cannot go does not keep the others. */
  async #try(projectId: string, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) =>
      this.parts.log.warn({ err: error, projectId }, 'the cache of a build engine could not be cleared')
    )
  }

  /** Those that were not used for longest come first. */
  async #known(): Promise<{ readonly unused: readonly string[]; readonly busy: readonly string[] }> {
    const all = [...(await this.parts.records.all())].sort(
      (one, other) => one.usedAt.getTime() - other.usedAt.getTime()
    )
    const ids = (isBusy: boolean) =>
      all.filter(one => one.isBusy === isBusy).map(({ projectId }) => projectId)
    return { unused: ids(false), busy: ids(true) }
  }
}
