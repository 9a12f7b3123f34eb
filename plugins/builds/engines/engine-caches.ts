import type { Clock, Log } from 'busbar/sdk'
import { nextToGo } from './cache-shares.js'
import type { EngineRecords } from './engine-store.js'
import type { ProjectEngines } from './project-engines.js'

interface EngineCachesParts {
  readonly engines: Pick<ProjectEngines, 'sizes' | 'removeUnused' | 'trim'>
  readonly records: Pick<EngineRecords, 'all' | 'isBusy'>
  /** What one may keep of what its builds do not use. */
  readonly cacheBytes: number
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
}

/** So long one is waited for: its files may be millions, and others do not wait for it. It goes on. */
const patienceMs = 5000

/** What build engines keep for the next builds, over all projects. What a build uses now is left alone. */
export class EngineCaches {
  /** By project, what is being removed, which whoever asks meanwhile shares: whether it is gone. */
  readonly #going = new Map<string, Promise<boolean>>()

  constructor(private readonly parts: EngineCachesParts) {}

  /** Has each keep what it may, and removes those that give way until all have no more than so many bytes together. */
  async trim(maxBytes: number): Promise<void> {
    const { engines, cacheBytes } = this.parts
    const known = await this.parts.records.all()
    await this.#within(
      known.flatMap(({ projectId, isBusy }) => (isBusy ? [this.#trimOne(projectId, cacheBytes)] : []))
    )
    if (known.length === 0) return
    const sizes = await engines.sizes()
    let left = known.map(one => ({ ...one, bytes: sizes.get(one.projectId) ?? 0 }))
    const tried = new Set<string>()
    for (;;) {
      const next = nextToGo(left, tried, maxBytes)
      if (next === undefined) return
      const { projectId, isBusy } = next
      tried.add(projectId)
      const work = isBusy ? this.#trimOne(projectId, 0).then(() => false) : this.#remove(projectId)
      let isGone: boolean | undefined
      const isDone = await this.#within([
        work.then(is => {
          isGone = is
        })
      ])
      // What takes longer goes on.
      if (isGone === true || (!isDone && !isBusy)) left = left.filter(one => one !== next)
    }
  }

  /**
   * Removes all of them, and of those that are in use what no build needs: a disk is short. False where some take longer, which
   * go on.
   */
  async clear(): Promise<boolean> {
    const known = await this.parts.records.all()
    return await this.#within(
      known.map(({ projectId, isBusy }) => (isBusy ? this.#trimOne(projectId, 0) : this.#remove(projectId)))
    )
  }

  /** Whether it is gone. */
  async #remove(projectId: string): Promise<boolean> {
    const { engines, records } = this.parts
    return await this.#once(projectId, async () => {
      // It may have begun to be used meanwhile.
      return !(await records.isBusy(projectId)) && (await engines.removeUnused(projectId))
    })
  }

  async #trimOne(projectId: string, keptBytes: number): Promise<boolean> {
    return await this.#once(`${projectId} ${keptBytes}`, async () => {
      await this.parts.engines.trim(projectId, keptBytes)
      return true
    })
  }

  /** One that cannot go does not keep the others. */
  #once(key: string, work: () => Promise<boolean>): Promise<boolean> {
    const known = this.#going.get(key)
    if (known !== undefined) return known
    const going = work()
      .catch((error: unknown) => {
        const [projectId] = key.split(' ')
        this.parts.log.warn({ err: error, projectId }, 'the cache of a build engine could not be cleared')
        return false
      })
      .finally(() => this.#going.delete(key))
    this.#going.set(key, going)
    return going
  }

  /** Whether all are done in the time that they are waited for. */
  async #within(works: ReadonlyArray<Promise<unknown>>): Promise<boolean> {
    const done = new AbortController()
    const isDone = await Promise.race([
      Promise.all(works).then(() => true),
      this.parts.clock.sleep(patienceMs, done.signal).then(
        () => false,
        () => false
      )
    ])
    done.abort()
    return isDone
  }
}
