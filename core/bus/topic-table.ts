import { isDeepStrictEqual } from 'node:util'
import type { Log } from 'busbar/sdk'
import type { BusCounts } from './bus-counts.js'
import type { ChannelTable } from './channel-table.js'
import { serverFrameText } from './client-frame.js'
import type { Connection } from './connection.js'
import { FanOut } from './fan-out.js'
import type { MessageEncoder } from './message-encoder.js'
import { ProjectTopics } from './project-topics.js'
import type { Relay } from './relay.js'
import { textFrame } from './text-frame.js'
import { Topic } from './topic.js'

/** Who says something: this process itself, and what was read. Others have ids. */
const here = 'here'
const read = 'read'

/** The channels with subscribers in this process. */
export class TopicTable {
  readonly #topics = new Map<string, Topic>()
  readonly #byProject = new ProjectTopics()
  readonly #fanOut: FanOut

  constructor(
    private readonly channels: ChannelTable,
    private readonly messages: MessageEncoder,
    private readonly relay: Relay | undefined,
    private readonly log: Log,
    /** Called when the state that was told last may not be the latest. */
    private readonly onDoubt: (topic: Topic) => void,
    counts?: BusCounts
  ) {
    this.#fanOut = new FanOut(log, counts)
  }

  /** `project`: that of the channel, as it was decided. */
  join(name: string, connection: Connection, project: string | undefined): void {
    const topic = this.#topics.get(name) ?? this.#open(name)
    this.#fanOut.seal(topic)
    topic.add(connection)
    connection.topics.set(name, topic)
    this.#bind(topic)
    this.place(topic, project)
  }

  /** Where the channel lies, as far as it is known. */
  place(topic: Topic, project: string | undefined): void {
    if (this.#topics.get(topic.name) === topic) this.#byProject.place(topic, project)
  }

  within(project: string): readonly Topic[] {
    return this.#byProject.within(project)
  }

  /** All there are now. */
  list(): readonly Topic[] {
    return [...this.#topics.values()]
  }

  leave(name: string, connection: Connection): void {
    const topic = connection.topics.get(name)
    if (topic === undefined) return
    connection.topics.delete(name)
    topic.delete(connection)
    if (topic.isEmpty) this.#close(topic)
  }

  /** False while the plugin of the channel is off. */
  isHeard(name: string): boolean {
    return this.#topics.get(name)?.record !== undefined
  }

  /** To the subscribers in this process. `from`: the process that says it; messages of one come in their order. */
  deliver(name: string, event: string, json: string, from = here): void {
    const topic = this.#topics.get(name)
    if (topic?.record === undefined) return
    if (event === topic.record.current?.event) this.#noteState(topic, json, from)
    this.#send(topic, event, json)
  }

  /** What was read of it, unless just that was told last. */
  tellState(topic: Topic, event: string, json: string): void {
    if (topic.lastState === json) return
    topic.statesTold++
    topic.toldBy = read
    topic.lastState = json
    this.#send(topic, event, json)
  }

  #noteState(topic: Topic, json: string, from: string): void {
    const isInDoubt = topic.toldBy !== undefined && topic.toldBy !== from
    topic.statesTold++
    topic.toldBy = from
    topic.lastState = json
    if (isInDoubt) this.onDoubt(topic)
  }

  #send(topic: Topic, event: string, json: string): void {
    const isEnd = event === topic.record?.endsWith
    const isKept = isEnd || event === topic.record?.current?.event
    this.#fanOut.add(topic, textFrame(serverFrameText(topic.name, event, json)), isKept)
    if (!isEnd) return
    this.#fanOut.seal(topic)
    for (const reader of topic.readers) reader.topics.delete(topic.name)
    this.#close(topic)
  }

  /** After the table of channels has changed: every topic follows it. Whether one has slept until now. */
  rebind(): boolean {
    let hasWoken = false
    for (const topic of this.#topics.values()) {
      const slept = topic.record === undefined
      this.#bind(topic)
      if (slept && topic.record !== undefined) hasWoken = true
    }
    return hasWoken
  }

  endSources(): void {
    for (const topic of this.#topics.values()) topic.setRecord(undefined)
  }

  #bind(topic: Topic): void {
    const record = this.channels.find(topic.name)?.record
    topic.setRecord(record)
    if (record === undefined) return
    // Another declaration may find another project.
    if (!isDeepStrictEqual(record.access, topic.access)) this.#byProject.remove(topic)
    topic.access = record.access
  }

  #open(name: string): Topic {
    const publishHere = (event: string, data: unknown) => {
      const json = this.messages.encode(name, event, data)
      if (json !== undefined) this.deliver(name, event, json)
    }
    const topic = new Topic(name, this.channels.find(name)?.id, publishHere, this.log)
    this.#topics.set(name, topic)
    this.relay?.watch(name)
    return topic
  }

  #close(topic: Topic): void {
    this.#topics.delete(topic.name)
    this.#byProject.remove(topic)
    topic.setRecord(undefined)
    this.relay?.unwatch(topic.name)
  }
}
