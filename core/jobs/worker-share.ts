import type { LaneName } from './recorded-job.js'

/**
 * How many workers of a lane are held by plugins that have a share of it: third-party ones, and those whose jobs
 * wait for tenants. One plugin whose jobs hang must leave workers to the others, and all of them together leave one
 * to the platform itself: half of the workers for one, all but one for all.
 */
export class WorkerShare {
  readonly #held = new Map<string, number>()

  constructor(private readonly workers: Readonly<Record<LaneName, number>>) {}

  take(plugin: string, lane: LaneName): void {
    this.#held.set(`${lane} ${plugin}`, this.#heldBy(plugin, lane) + 1)
  }

  give(plugin: string, lane: LaneName): void {
    const left = this.#heldBy(plugin, lane) - 1
    if (left > 0) this.#held.set(`${lane} ${plugin}`, left)
    else this.#held.delete(`${lane} ${plugin}`)
  }

  isUsedUp(plugin: string, lane: LaneName): boolean {
    const workers = this.workers[lane]
    let inAll = 0
    for (const [key, count] of this.#held) if (key.startsWith(`${lane} `)) inAll += count
    return (
      this.#heldBy(plugin, lane) >= Math.max(1, Math.floor(workers / 2)) || inAll >= Math.max(1, workers - 1)
    )
  }

  #heldBy(plugin: string, lane: LaneName): number {
    return this.#held.get(`${lane} ${plugin}`) ?? 0
  }
}
