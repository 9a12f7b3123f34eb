import type { Jobs, Tx } from 'busbar/sdk'
import type { DatabaseStore } from '../records/database-store.js'

interface WorkQueueParts {
  readonly jobs: Jobs
  readonly store: Pick<DatabaseStore, 'ownerOf'>
}

/** So many at a time of one owner: a server may never answer, and others wait for a worker too, with their deploys as well. */
const mostOfOwner = 3

/** In which order databases are worked on. The jobs of one queue are run one after another. */
export class WorkQueue {
  readonly #atWork = new Set<string>()

  constructor(private readonly parts: WorkQueueParts) {}

  /** An upgrade may take hours: it has a queue of its own, in which no database that is to be made waits for it. */
  async enqueue(task: 'provision' | 'upgrade', databaseId: string, tx?: Tx): Promise<void> {
    const { jobs, store } = this.parts
    const owner = (await store.ownerOf(databaseId, tx)) ?? databaseId
    const part = task === 'upgrade' ? 0 : Number.parseInt(databaseId.slice(0, 8), 16) % mostOfOwner
    await jobs.enqueue(task, { databaseId }, { key: databaseId, queue: `${task}:${owner}:${part}` }, tx)
  }

  /** Nothing where it is worked on already: its project may have got another owner meanwhile, and so another queue. */
  async once(databaseId: string, work: () => Promise<void>): Promise<void> {
    if (this.#atWork.has(databaseId)) return
    this.#atWork.add(databaseId)
    try {
      await work()
    } finally {
      this.#atWork.delete(databaseId)
    }
  }
}
