import { Backoff, bounded, type Clock, type Log } from 'busbar/sdk'
import type { ChannelRecord } from './channel-table.js'
import type { MessageEncoder } from './message-encoder.js'
import type { Topic } from './topic.js'
import type { TopicTable } from './topic-table.js'

const idsAtOnce = 500
const readMs = 30_000
/** A state that is told again and again while it is read is told. */
const attempts = 3

interface StateRefreshParts {
  readonly topics: TopicTable
  readonly messages: MessageEncoder
  readonly clock: Clock
  readonly log: Log
}

type StateRecord = ChannelRecord & { readonly current: NonNullable<ChannelRecord['current']> }

/** Tells subscribers of this process how things are after messages about them may have been lost. See `ChannelSpec.current`. */
export class StateRefresh {
  readonly #end = new AbortController()
  readonly #backoff: Backoff
  /** The plugins whose channels may have missed something. */
  #plugins = new Set<string>()
  #isForAll = false
  #running: Promise<void> | undefined

  constructor(private readonly parts: StateRefreshParts) {
    this.#backoff = new Backoff(parts.clock, { firstMs: 500, longestMs: 30_000 })
  }

  /** Those of one plugin, or of all. */
  soon(plugin?: string): void {
    if (plugin === undefined) this.#isForAll = true
    else this.#plugins.add(plugin)
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async close(): Promise<void> {
    this.#end.abort(new Error('the bus is closing'))
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#end
    while (!signal.aborted && (this.#isForAll || this.#plugins.size > 0)) {
      const plugins = this.#isForAll ? undefined : this.#plugins
      this.#isForAll = false
      this.#plugins = new Set()
      const failed = await this.#refresh(plugins)
      for (const plugin of failed) this.#plugins.add(plugin)
      if (failed.size === 0) this.#backoff.reset()
      else await this.#backoff.pause(signal)
    }
  }

  /** The plugins that could not be asked. */
  async #refresh(plugins: ReadonlySet<string> | undefined): Promise<ReadonlySet<string>> {
    const failed = new Set<string>()
    const groups = groupsOf(this.parts.topics.list(), plugins)
    await Promise.all(
      groups.map(async ([record, topics]) => {
        try {
          for (let from = 0; from < topics.length; from += idsAtOnce)
            await this.#tell(record, topics.slice(from, from + idsAtOnce))
        } catch (error) {
          if (this.#end.signal.aborted) return
          failed.add(record.plugin)
          if (this.#backoff.isFresh)
            this.parts.log.warn(
              { err: error, plugin: record.plugin, channel: record.name },
              'subscribers of a channel may have missed a change, and how things are now could not be read: it is tried again'
            )
        }
      })
    )
    return failed
  }

  async #tell(record: StateRecord, topics: readonly Topic[]): Promise<void> {
    const { topics: table, messages } = this.parts
    const { event, read } = record.current
    let left = topics
    for (let attempt = 0; left.length > 0 && attempt < attempts; attempt++) {
      const asked = left.map(topic => ({ topic, told: topic.statesTold }))
      const states = await bounded(async () => await read(left.flatMap(({ id }) => id ?? [])), {
        ms: readMs,
        signal: this.#end.signal,
        what: `the state of ${record.name}`
      })
      // What was told meanwhile may be newer than what was read, or older.
      left = asked.filter(({ topic, told }) => topic.statesTold !== told).map(({ topic }) => topic)
      for (const { topic, told } of asked) {
        if (topic.statesTold !== told || topic.record !== record || !states.has(topic.id ?? '')) continue
        const json = messages.encode(topic.name, event, states.get(topic.id ?? ''))
        if (json !== undefined) table.deliver(topic.name, event, json)
      }
    }
  }
}

function groupsOf(
  topics: readonly Topic[],
  plugins: ReadonlySet<string> | undefined
): ReadonlyArray<readonly [StateRecord, readonly Topic[]]> {
  const groups = new Map<StateRecord, Topic[]>()
  for (const topic of topics) {
    const { record, id } = topic
    if (record === undefined || id === undefined || !hasState(record)) continue
    if (plugins !== undefined && !plugins.has(record.plugin)) continue
    const group = groups.get(record)
    if (group === undefined) groups.set(record, [topic])
    else group.push(topic)
  }
  return [...groups]
}

const hasState = (record: ChannelRecord): record is StateRecord => record.current !== undefined
