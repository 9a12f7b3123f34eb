import type { Clock } from 'busbar/sdk'
import type { DeploymentLogStore, LogProgress, WrittenChunk } from './deployment-log-store.js'

/** The logs are in the database, so that any process can stream them; they are looked at this often. */
const pollMs = 300

interface PollParts {
  readonly logs: Pick<DeploymentLogStore, 'progress' | 'read'>
  readonly clock: Clock
}

/**
 * Looks at the logs that are streamed: one query for all of them together, and one more for each piece that is new,
 * however many streams there are. One user may open many, and all share the database.
 */
export class BuildLogPoll {
  #wanted = new Set<string>()
  #next: Promise<ReadonlyMap<string, LogProgress>> | undefined
  /** Of the streams that follow the latest look. */
  readonly #reads = new Map<string, Promise<readonly WrittenChunk[]>>()

  constructor(private readonly parts: PollParts) {}

  /** Waits for the next look; undefined when there is no such deployment any more. */
  async next(deploymentId: string): Promise<LogProgress | undefined> {
    this.#wanted.add(deploymentId)
    this.#next ??= this.#look()
    return (await this.#next).get(deploymentId)
  }

  /** What is there at the latest look or later, from `fromSeq` on. */
  async read(deploymentId: string, fromSeq: number): Promise<readonly WrittenChunk[]> {
    const key = `${deploymentId} ${fromSeq}`
    const read = this.#reads.get(key) ?? this.parts.logs.read(deploymentId, fromSeq)
    this.#reads.set(key, read)
    return await read
  }

  async #look(): Promise<ReadonlyMap<string, LogProgress>> {
    await this.parts.clock.sleep(pollMs)
    const ids = [...this.#wanted]
    // Who comes from now on waits for another one.
    this.#wanted = new Set()
    this.#next = undefined
    const found = await this.parts.logs.progress(ids)
    // What was read before may lack the last lines of one that has ended since.
    this.#reads.clear()
    return new Map(found.map(progress => [progress.id, progress]))
  }
}
