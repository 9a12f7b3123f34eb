import type { Log } from 'busbar/sdk'
import type { ChannelRecord } from './channel-table.js'
import type { Connection } from './connection.js'

/** A channel with subscribers in this process, by its full name. */
export class Topic {
  /** Frames of this tick that have not been handed to the fan-out. */
  pending: Buffer[] = []
  pendingBytes = 0
  /** Those of them that tell a state, or the end. */
  pendingStates = new Set<Buffer>()
  /** The one of them for which there was no room. */
  pendingBeyond: Buffer | undefined
  /** How often its state has been told, by whom last, and which, as JSON, since the last subscriber has come. */
  statesTold = 0
  toldBy: string | undefined
  lastState: string | undefined
  /** The one that decides who may hear it; undefined where none does, or it is not known. */
  project: string | undefined
  /** That of the declaration by which the project was found. */
  access: ChannelRecord['access'] | undefined
  #record: ChannelRecord | undefined
  #source: AbortController | undefined
  #readers: readonly Connection[] | undefined
  readonly #subscribers = new Set<Connection>()

  constructor(
    readonly name: string,
    readonly id: string | undefined,
    readonly publish: (event: string, data: unknown) => void,
    readonly log: Log
  ) {}

  /** Undefined while the plugin is off: the subscriptions sleep. */
  get record(): ChannelRecord | undefined {
    return this.#record
  }

  /** Everybody subscribed, as a list that never changes: the next change makes another. */
  get readers(): readonly Connection[] {
    this.#readers ??= [...this.#subscribers]
    return this.#readers
  }

  get isEmpty(): boolean {
    return this.#subscribers.size === 0
  }

  has(connection: Connection): boolean {
    return this.#subscribers.has(connection)
  }

  add(connection: Connection): void {
    this.#subscribers.add(connection)
    this.#readers = undefined
    this.lastState = undefined
  }

  delete(connection: Connection): void {
    this.#subscribers.delete(connection)
    this.#readers = undefined
  }

  /** Ends the source of the record before, and starts that of the new one. */
  setRecord(record: ChannelRecord | undefined): void {
    if (record === this.#record) return
    this.#source?.abort(new Error(`channel ${this.name} has no subscribers, or its plugin stopped`))
    this.#source = undefined
    this.#record = record
    if (record?.source !== undefined) this.#start(record, record.source)
  }

  #start(record: ChannelRecord, source: NonNullable<ChannelRecord['source']>): void {
    const controller = new AbortController()
    const { signal } = controller
    this.#source = controller
    const publish = (event: string, data: unknown) => {
      if (!signal.aborted) this.publish(event, data)
    }
    const run = async () => {
      await source({ id: this.id, signal, publish })
    }
    run().catch((error: unknown) => {
      // What an aborted source throws is the abort.
      if (!signal.aborted)
        this.log.error(
          { err: error, plugin: record.plugin, channel: this.name },
          'the source of a channel failed'
        )
    })
  }
}
