import type { Clock } from 'busbar/sdk'
import type { HeldCache } from '../api.js'
import type { EngineRecords } from './engine-store.js'
import type { EngineUsage } from './engine-usage.js'
import type { ProjectEngines } from './project-engines.js'

interface HoldingsParts {
  readonly engines: Pick<ProjectEngines, 'sizes'>
  readonly records: Pick<EngineRecords, 'all'>
  readonly engineUsage: Pick<EngineUsage, 'heldBy'>
  readonly clock: Pick<Clock, 'sleep'>
}

/** The Docker Engine walks through all its volumes to say what they take: longer than this, and what is known has to do. */
const patienceMs = 2000

/** What the build engines of projects hold on the disk. */
export class EngineHoldings {
  #sizes: ReadonlyMap<string, number> = new Map()
  #measuring: Promise<boolean> | undefined

  constructor(private readonly parts: HoldingsParts) {}

  async read(): Promise<readonly HeldCache[]> {
    const { records, engineUsage } = this.parts
    const isNew = await this.#measured()
    return (await records.all()).map(({ projectId }) => ({
      projectId,
      bytes: (isNew ? undefined : engineUsage.heldBy(projectId)) ?? this.#sizes.get(projectId) ?? 0
    }))
  }

  /** Whether that is of now. Whoever asks while it takes long shares it. */
  async #measured(): Promise<boolean> {
    this.#measuring ??= this.parts.engines
      .sizes()
      .then(
        sizes => {
          this.#sizes = sizes
          return true
        },
        () => false
      )
      .finally(() => {
        this.#measuring = undefined
      })
    const done = new AbortController()
    const late = this.parts.clock.sleep(patienceMs, done.signal).then(
      () => false,
      () => false
    )
    const isNew = await Promise.race([this.#measuring, late])
    done.abort()
    return isNew
  }
}
