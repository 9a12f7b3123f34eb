import type { Clock, Log, SignedInCaller } from 'busbar/sdk'
import type { RawData, WebSocket } from 'ws'
import type { AccessChange } from '../changes/access-change.js'
import { AccessRounds } from '../changes/access-rounds.js'
import type { Redactor } from '../log/redactor.js'
import { type BusCounts, noBusCounts } from './bus-counts.js'
import { type Authority, ChannelAccess } from './channel-access.js'
import { type ChannelRecord, ChannelTable } from './channel-table.js'
import { longestClientFrame, readClientFrame } from './client-frame.js'
import type { Connection } from './connection.js'
import { ConnectionTable } from './connection-table.js'
import { MessageEncoder } from './message-encoder.js'
import { recheck } from './recheck.js'
import type { Relay } from './relay.js'
import { StateRefresh } from './state-refresh.js'
import type { Topic } from './topic.js'
import { TopicTable } from './topic-table.js'

export interface HubOptions {
  readonly log: Log
  readonly clock: Clock
  readonly maxConnectionsPerUser: number
  readonly authority: Authority
  /** Calls `lost` when the caller's credential is no longer good; returns how to stop. */
  readonly holdCredential?: (caller: SignedInCaller, lost: () => void) => () => void
  readonly relay?: Relay
  /** Takes live secrets out of everything published. */
  readonly redactor?: Pick<Redactor, 'cleanJson'>
}

/** The server's side of `/api/ws`. */
export class Hub {
  readonly #channels = new ChannelTable()
  readonly #counts: BusCounts = noBusCounts()
  readonly #access: ChannelAccess
  readonly #messages: MessageEncoder
  readonly #topics: TopicTable
  readonly #connections: ConnectionTable
  readonly #relay: Relay | undefined
  readonly #rounds: AccessRounds
  readonly #refresh: StateRefresh
  readonly #holdCredential: HubOptions['holdCredential']

  constructor({ log, clock, maxConnectionsPerUser, authority, holdCredential, relay, redactor }: HubOptions) {
    this.#relay = relay
    this.#holdCredential = holdCredential
    this.#access = new ChannelAccess(this.#channels, authority, log)
    this.#messages = new MessageEncoder(this.#channels, log, redactor)
    const doubt = (topic: Topic): void => this.#refresh.ofTopic(topic)
    const topics = new TopicTable(this.#channels, this.#messages, relay, log, doubt, this.#counts)
    this.#topics = topics
    this.#connections = new ConnectionTable({
      log,
      clock,
      maxPerUser: maxConnectionsPerUser,
      counts: this.#counts,
      others: relay,
      subscribable: {
        decide: (name, caller) => this.#access.decide(name, caller),
        join: (name, connection, project) => topics.join(name, connection, project),
        leave: (name, connection) => topics.leave(name, connection)
      }
    })
    const parts = { access: this.#access, topics, connections: this.#connections }
    this.#rounds = new AccessRounds((change, turns) => recheck(change, turns, parts))
    const accessAsked = async (): Promise<void> => await this.#rounds.asked()
    this.#refresh = new StateRefresh({ topics, messages: this.#messages, accessAsked, clock, log })
    relay?.onMessage((name, event, json, from) => topics.deliver(name, event, json, from))
    relay?.onGap(() => this.#refresh.all())
  }

  get connections(): number {
    return this.#connections.size
  }

  get counts(): Readonly<BusCounts> {
    return { ...this.#counts, dropped: this.#counts.dropped + (this.#relay?.lost ?? 0) }
  }

  /** What can be heard, as a list that never changes: the next change makes another. */
  get channels(): readonly ChannelRecord[] {
    return this.#channels.records
  }

  /** Takes the place of what the plugin had declared; suspended subscriptions go on. */
  addChannels(pluginId: string, records: readonly ChannelRecord[]): void {
    this.#channels.replace(pluginId, records)
    const haveSlept = this.#topics.rebind()
    this.recheck({ kind: 'all' })
    if (haveSlept) this.#refresh.of(pluginId)
  }

  /** Ends the sources. Subscriptions are suspended until the plugin is back; new ones are refused. */
  removeChannels(pluginId: string): void {
    this.#channels.remove(pluginId)
    this.#topics.rebind()
  }

  /** Takes over an upgraded socket, on which permessage-deflate must be off. */
  accept(webSocket: WebSocket, caller: SignedInCaller): void {
    const connection = this.#connections.admit(webSocket, caller)
    if (connection === undefined) return
    webSocket.on('message', data => {
      receive(connection, data)
    })
    const release = this.#holdCredential?.(caller, () => {
      connection.revoke()
    })
    if (release !== undefined) webSocket.on('close', release)
  }

  publish(channel: string, event: string, data: unknown): void {
    const isHeardElsewhere = this.#relay?.isWanted(channel) === true || this.#isForAll(channel, event)
    if (!this.#topics.isHeard(channel) && !isHeardElsewhere) return
    const json = this.#messages.encode(channel, event, data)
    if (json === undefined) return
    if (isHeardElsewhere) this.#relay?.send(channel, event, json)
    this.#topics.deliver(channel, event, json)
  }

  /** A state: who subscribes elsewhere in this moment, or has just come, is not known here yet. */
  #isForAll(channel: string, event: string): boolean {
    return this.#relay !== undefined && this.#channels.find(channel)?.record.current?.event === event
  }

  /** Ends the subscriptions of callers who lost access to the channel: soon, in turns with everything else. */
  recheck(change: AccessChange): void {
    this.#access.factsChanged()
    this.#rounds.after(change)
  }

  hasSubscribers(channel: string): boolean {
    return this.#topics.isHeard(channel) || this.#relay?.isWanted(channel) === true
  }

  /** Resolves when the next messages on the channel have room on their way to other processes. */
  async room(channel: string): Promise<void> {
    await this.#relay?.room(channel)
  }

  /** Closes every socket; resolves when they are gone. */
  async close(): Promise<void> {
    this.#topics.endSources()
    await this.#refresh.close()
    await this.#connections.close()
    await this.#relay?.close()
  }
}

function receive(connection: Connection, data: RawData): void {
  const { webSocket } = connection
  // Once a close is under way the rest of what was sent is of no interest.
  if (webSocket.readyState !== webSocket.OPEN) return
  connection.spend()
  const bytes = Array.isArray(data)
    ? Buffer.concat(data)
    : Buffer.from(data instanceof ArrayBuffer ? new Uint8Array(data) : data)
  const frame = bytes.length > longestClientFrame ? undefined : readClientFrame(bytes.toString())
  if (frame === undefined) closeWithError(connection, 1009, 'frame too large')
  else if (frame.kind === 'malformed') closeWithError(connection, 1007, 'malformed JSON')
  else if (frame.kind === 'subscribe') connection.subscribe(frame.channel)
  else if (frame.kind === 'unsubscribe') connection.unsubscribe(frame.channel)
}

function closeWithError(connection: Connection, code: number, reason: string): void {
  connection.end()
  connection.webSocket.close(code, reason)
}
