import type { EngineRecords } from './engine-store.js'
import type { ProjectEngines } from './project-engines.js'

interface EngineCachesParts {
  readonly engines: Pick<ProjectEngines, 'sizes' | 'removeUnused'>
  readonly records: Pick<EngineRecords, 'all'>
}

/** What build engines keep for the next builds, over all projects. What a build uses now is left alone. */
export class EngineCaches {
  constructor(private readonly parts: EngineCachesParts) {}

  /** Removes those that have not been used for longest, until the others have no more than so many bytes together. */
  async trim(maxBytes: number): Promise<void> {
    const unused = await this.#unused()
    if (unused.length === 0) return
    const sizes = await this.parts.engines.sizes()
    let bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0)
    for (const projectId of unused) {
      if (bytes <= maxBytes) return
      if (await this.parts.engines.removeUnused(projectId)) bytes -= sizes.get(projectId) ?? 0
    }
  }

  /** Removes all of them: a disk is short. */
  async clear(): Promise<void> {
    for (const projectId of await this.#unused()) await this.parts.engines.removeUnused(projectId)
  }

  async #unused(): Promise<readonly string[]> {
    return (await this.parts.records.all())
      .filter(({ isBusy }) => !isBusy)
      .sort((one, other) => one.usedAt.getTime() - other.usedAt.getTime())
      .map(({ projectId }) => projectId)
  }
}
