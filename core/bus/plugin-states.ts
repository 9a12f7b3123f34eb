import { Backoff, bounded, type Clock, type Log, pause } from 'busbar/sdk'
import type { ChannelRecord } from './channel-table.js'
import type { MessageEncoder } from './message-encoder.js'
import type { Topic } from './topic.js'
import type { TopicTable } from './topic-table.js'

const idsAtOnce = 500
const readMs = 30_000
/** A state that is told again and again while it is read is told. */
const attempts = 3
/** Between two looks: whatever comes meanwhile needs one. */
const restMs = 1_000

export interface StateParts {
  readonly topics: TopicTable
  readonly messages: MessageEncoder
  /** Resolves when those who have lost access by now hear nothing any more. */
  readonly accessAsked: () => Promise<void>
  readonly clock: Clock
  readonly log: Log
}

type StateRecord = ChannelRecord & { readonly current: NonNullable<ChannelRecord['current']> }

export const hasState = (record: ChannelRecord | undefined): record is StateRecord =>
  record?.current !== undefined

/** Reads how things are of the channels of one plugin, and tells it. */
export class PluginStates {
  readonly #backoff: Backoff
  #isForAll = false
  #topics = new Set<Topic>()
  #running: Promise<void> | undefined

  constructor(
    private readonly plugin: string,
    private readonly parts: StateParts,
    private readonly signal: AbortSignal
  ) {
    this.#backoff = new Backoff(parts.clock, { firstMs: 500, longestMs: 30_000 })
  }

  /** Of one topic, or of all. */
  look(topic?: Topic): void {
    if (topic === undefined) this.#isForAll = true
    else this.#topics.add(topic)
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock, log, accessAsked } = this.parts
    while (!this.signal.aborted && (this.#isForAll || this.#topics.size > 0)) {
      const topics = this.#isForAll ? this.parts.topics.list() : [...this.#topics]
      this.#isForAll = false
      this.#topics = new Set()
      try {
        await accessAsked()
        for (const [record, group] of this.#groupsOf(topics)) await this.#tellAll(record, group)
        this.#backoff.reset()
        await pause(clock, restMs, this.signal)
      } catch (error) {
        for (const topic of topics) this.#topics.add(topic)
        if (this.#backoff.isFresh && !this.signal.aborted)
          log.warn(
            { err: error, plugin: this.plugin },
            'subscribers may have missed a change, and how things are now could not be read: it is tried again'
          )
        await this.#backoff.pause(this.signal)
      }
    }
  }

  #groupsOf(topics: readonly Topic[]): ReadonlyMap<StateRecord, readonly Topic[]> {
    const groups = new Map<StateRecord, Topic[]>()
    for (const topic of topics) {
      const { record } = topic
      if (topic.id === undefined || record?.plugin !== this.plugin || !hasState(record)) continue
      const group = groups.get(record)
      if (group === undefined) groups.set(record, [topic])
      else group.push(topic)
    }
    return groups
  }

  async #tellAll(record: StateRecord, topics: readonly Topic[]): Promise<void> {
    for (let from = 0; from < topics.length; from += idsAtOnce)
      await this.#tell(record, topics.slice(from, from + idsAtOnce))
  }

  async #tell(record: StateRecord, topics: readonly Topic[]): Promise<void> {
    const { topics: table, messages } = this.parts
    const { event, read } = record.current
    let left = topics
    for (let attempt = 0; left.length > 0 && attempt < attempts; attempt++) {
      const asked = left.map(topic => ({ topic, told: topic.statesTold }))
      const states = await bounded(async () => await read(left.flatMap(({ id }) => id ?? [])), {
        ms: readMs,
        signal: this.signal,
        what: `the state of ${record.name}`
      })
      // What was told meanwhile may be newer than what was read, or older.
      left = asked.filter(({ topic, told }) => topic.statesTold !== told).map(({ topic }) => topic)
      for (const { topic, told } of asked) {
        if (topic.statesTold !== told || !states.has(topic.id ?? '')) continue
        // By another run of the plugin, which may know more by now.
        if (topic.record !== record) this.look(topic)
        else {
          const json = messages.encode(topic.name, event, states.get(topic.id ?? ''))
          if (json !== undefined) table.tellState(topic, event, json)
        }
      }
    }
  }
}
