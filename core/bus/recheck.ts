import type { SignedInCaller, Turns } from 'busbar/sdk'
import type { AccessChange } from '../changes/access-change.js'
import type { ChannelAccess, Verdict } from './channel-access.js'
import type { Connection } from './connection.js'
import type { ConnectionTable } from './connection-table.js'
import type { Topic } from './topic.js'
import type { TopicTable } from './topic-table.js'

type Subscription = readonly [topic: Topic, reader: Connection]

interface Asked {
  readonly topic: Topic
  readonly reader: Connection
  readonly answer: Promise<Verdict | undefined>
}

/** Decisions that are asked for at a time. */
const batchSize = 256

interface RecheckParts {
  readonly access: ChannelAccess
  readonly topics: TopicTable
  readonly connections: ConnectionTable
}

/** Asks again for the subscriptions that a change of access concerns, and ends those that are no longer granted. */
export async function recheck(
  change: AccessChange,
  turns: Turns,
  { access, topics, connections }: RecheckParts
): Promise<void> {
  const answers = new Answers(access)
  const concerned =
    change.kind === 'project'
      ? readersOf(topics.within(change.id))
      : change.kind === 'user'
        ? heardBy(connections.of(change.id))
        : readersOf(topics.list())
  let batch: Asked[] = []
  for (const [topic, reader] of concerned) {
    if (turns.isOver) await turns.pass()
    // A suspended one is checked when its plugin is back; one without an id is in no project.
    if (topic.record === undefined || topic.id === undefined || !topic.has(reader)) continue
    batch.push({ topic, reader, answer: answers.of(topic, topic.record, reader.caller) })
    if (batch.length < batchSize) continue
    await settle(batch)
    batch = []
  }
  await settle(batch)

  async function settle(asked: readonly Asked[]): Promise<void> {
    for (const { topic, reader, answer } of asked) {
      const verdict = await answer
      if (turns.isOver) await turns.pass()
      if (verdict?.isGranted === true) topics.place(topic, verdict.project)
      else reader.lose(topic, verdict)
    }
  }
}

function* readersOf(topics: readonly Topic[]): Generator<Subscription, void> {
  for (const topic of topics) for (const reader of topic.readers) yield [topic, reader]
}

function* heardBy(connections: readonly Connection[]): Generator<Subscription, void> {
  for (const connection of connections)
    for (const topic of [...connection.topics.values()]) yield [topic, connection]
}

/** Of one round: one question for what is decided alike. */
class Answers {
  readonly #byCaller = new Map<SignedInCaller, Map<string, Promise<Verdict | undefined>>>()

  constructor(private readonly access: ChannelAccess) {}

  of(
    topic: Topic,
    record: NonNullable<Topic['record']>,
    caller: SignedInCaller
  ): Promise<Verdict | undefined> {
    // Many sockets of one credential share the caller that is remembered for it.
    const own = this.#byCaller.get(caller) ?? new Map<string, Promise<Verdict | undefined>>()
    this.#byCaller.set(caller, own)
    // A resource never changes its owner: where the channel lies need not be asked again.
    const { project } = topic
    const key = project === undefined ? topic.name : `${record.name} ${project}`
    const known = own.get(key)
    if (known !== undefined) return known
    const answer =
      project === undefined
        ? this.access.decide(topic.name, caller)
        : this.access.decideIn(record, project, caller)
    own.set(key, answer)
    return answer
  }
}
