import type { Clock, Log, SignedInCaller } from 'busbar/sdk'
import type { RawData, WebSocket } from 'ws'
import { whenLate } from '../clock/waits.js'
import type { Redactor } from '../log/redactor.js'
import { ChannelTable, type ChannelRecord } from './channel-table.js'
import { longestClientFrame, readClientFrame, serverFrameText } from './client-frame.js'
import { Connection, type Subscribable } from './connection.js'
import { FanOut } from './fan-out.js'
import { startHeartbeat } from './heartbeat.js'
import type { Relay } from './relay.js'
import { Topic } from './topic.js'
import { frameOf } from './ws-internals.js'

/** How long `close` waits for clients to answer the close frame. */
const closeWithinMs = 1000

export interface HubOptions {
  readonly log: Log
  readonly clock: Clock
  readonly maxConnectionsPerUser: number
  /** Asked at each subscribe. What throws is a refusal. */
  readonly authorize: (channel: ChannelRecord, id: string | undefined, caller: SignedInCaller) => Promise<boolean>
  readonly relay?: Relay
  /** Takes live secrets out of everything published. */
  readonly redactor?: Pick<Redactor, 'cleanJson'>
}

export type Hub = ReturnType<typeof createHub>

/** The server's side of `/api/ws`. */
export function createHub ({ log, clock, maxConnectionsPerUser, authorize, relay, redactor }: HubOptions) {
  const channels = new ChannelTable()
  const topics = new Map<string, Topic>()
  const connections = new Set<Connection>()
  const connectionsOf = new Map<string, number>()
  const fanOut = new FanOut(log)
  const stopHeartbeat = startHeartbeat(clock, connections)
  let onEmpty: (() => void) | undefined
  let isClosed = false
  let rechecks = 0
  relay?.onMessage(deliver)

  const subscribable: Subscribable = {
    async isGranted (name, caller) {
      // Asked again when the plugin was reloaded or the facts have changed meanwhile: only what is current counts.
      for (let found = channels.find(name); found !== undefined;) {
        const asked = rechecks
        try {
          if (!await authorize(found.record, found.id, caller)) return false
        } catch (error) {
          log.error({ err: error, plugin: found.record.plugin, channel: name }, 'access to a channel could not be decided')
          return undefined
        }
        const now = channels.find(name)
        if (now?.record === found.record && asked === rechecks) return true
        found = now
      }
      return false
    },
    join (name, connection) {
      const topic = topics.get(name) ?? openTopic(name)
      fanOut.seal(topic)
      topic.add(connection)
      connection.topics.set(name, topic)
      topic.setRecord(channels.find(name)?.record)
    },
    leave (name, connection) {
      const topic = connection.topics.get(name)
      if (topic === undefined) return
      connection.topics.delete(name)
      topic.delete(connection)
      if (topic.isEmpty) closeTopic(topic)
    }
  }

  function openTopic (name: string): Topic {
    const publishHere = (event: string, data: unknown) => {
      const json = encode(name, event, data)
      if (json !== undefined) deliver(name, event, json)
    }
    const topic = new Topic(name, channels.find(name)?.id, publishHere, log)
    topics.set(name, topic)
    relay?.watch(name)
    return topic
  }

  function closeTopic (topic: Topic): void {
    topics.delete(topic.name)
    topic.setRecord(undefined)
    relay?.unwatch(topic.name)
  }

  /** To the subscribers in this process. */
  function deliver (name: string, event: string, json: string): void {
    const topic = topics.get(name)
    if (topic?.record === undefined) return
    fanOut.add(topic, frameOf(serverFrameText(name, event, json)))
    if (event !== topic.record.endsWith) return
    fanOut.seal(topic)
    for (const reader of topic.readers) reader.topics.delete(name)
    closeTopic(topic)
  }

  /** Undefined for what the channel may not carry, which is logged: a publisher has no use for an error. */
  function encode (name: string, event: string, data: unknown): string | undefined {
    const record = channels.find(name)?.record
    if (record?.events.includes(event) !== true) {
      log.error({ channel: name, event }, record === undefined ? 'a message was published on a channel that nobody declares' : 'a channel was given an event that it does not declare')
      return undefined
    }
    try {
      const json = JSON.stringify(data ?? null) ?? 'null'
      return redactor?.cleanJson(json) ?? json
    } catch (error) {
      log.error({ err: error, plugin: record.plugin, channel: name, event }, 'a message is not JSON')
      return undefined
    }
  }

  function admit (webSocket: WebSocket, caller: SignedInCaller): Connection | undefined {
    // A socket that breaks says so here and then closes: its close is all that matters.
    webSocket.on('error', () => {})
    const own = connectionsOf.get(caller.user.id) ?? 0
    if (isClosed || webSocket.readyState !== webSocket.OPEN) {
      webSocket.terminate()
      return undefined
    }
    if (own >= maxConnectionsPerUser) {
      webSocket.close(1013, 'too many connections')
      return undefined
    }
    connectionsOf.set(caller.user.id, own + 1)
    const connection = new Connection(webSocket, caller, subscribable, () => {
      log.debug({ user: caller.user.id }, 'a client that did not read was disconnected')
      webSocket.terminate()
    })
    connections.add(connection)
    return connection
  }

  function dismiss (connection: Connection): void {
    connections.delete(connection)
    const userId = connection.caller.user.id
    const left = (connectionsOf.get(userId) ?? 1) - 1
    if (left > 0) connectionsOf.set(userId, left)
    else connectionsOf.delete(userId)
    if (connections.size === 0) onEmpty?.()
  }

  function turnAway (connection: Connection, code: number, reason: string): void {
    connection.end()
    connection.webSocket.close(code, reason)
  }

  function receive (connection: Connection, data: RawData): void {
    const { webSocket } = connection
    // Once a close is under way the rest of what was sent is of no interest.
    if (webSocket.readyState !== webSocket.OPEN) return
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data instanceof ArrayBuffer ? new Uint8Array(data) : data)
    const frame = bytes.length > longestClientFrame ? undefined : readClientFrame(bytes.toString())
    if (frame === undefined) turnAway(connection, 1009, 'frame too large')
    else if (frame.kind === 'malformed') turnAway(connection, 1007, 'malformed JSON')
    else if (frame.kind === 'subscribe') connection.subscribe(frame.channel)
    else if (frame.kind === 'unsubscribe') connection.unsubscribe(frame.channel)
  }

  async function closeAll (): Promise<void> {
    const emptied = new Promise<void>(resolve => { onEmpty = resolve })
    for (const { webSocket } of connections) webSocket.close(1000)
    await whenLate(emptied, closeWithinMs, () => { for (const { webSocket } of connections) webSocket.terminate() })
  }

  /** Asks again for every subscription to something of a project; those that sleep are asked for when their plugin is back. */
  function recheck (): void {
    rechecks++
    for (const topic of topics.values()) {
      if (topic.record !== undefined && topic.id !== undefined) for (const reader of topic.readers) void reader.recheck(topic)
    }
  }

  /** After the table has changed: every topic of the plugin follows it. */
  function rebind (): void {
    for (const topic of topics.values()) topic.setRecord(channels.find(topic.name)?.record)
  }

  return {
    /** Takes the place of what the plugin had declared; subscriptions of before wake up. */
    addChannels (pluginId: string, records: readonly ChannelRecord[]): void {
      channels.replace(pluginId, records)
      rebind()
      recheck()
    },
    /** Ends the sources. Subscriptions sleep until the plugin is back; new ones are refused. */
    removeChannels (pluginId: string): void {
      channels.remove(pluginId)
      rebind()
    },
    /** Takes over an upgraded socket, on which permessage-deflate must be off. */
    accept (webSocket: WebSocket, caller: SignedInCaller): void {
      const connection = admit(webSocket, caller)
      if (connection === undefined) return
      webSocket.on('message', data => { receive(connection, data) })
      webSocket.on('pong', () => { connection.isUnanswered = false })
      webSocket.on('close', () => {
        connection.end()
        dismiss(connection)
      })
    },
    publish (channel: string, event: string, data: unknown): void {
      const isHeardHere = topics.get(channel)?.record !== undefined
      const isHeardElsewhere = relay?.isWanted(channel) === true
      if (!isHeardHere && !isHeardElsewhere) return
      const json = encode(channel, event, data)
      if (json === undefined) return
      if (isHeardElsewhere) relay?.send(channel, event, json)
      deliver(channel, event, json)
    },
    /** Ends the subscriptions of those who may no longer hear the channel. */
    recheck,
    hasSubscribers: (channel: string): boolean => topics.get(channel)?.record !== undefined || relay?.isWanted(channel) === true,
    connections: (): number => connections.size,
    /** Closes every socket; resolves when they are gone. */
    async close (): Promise<void> {
      isClosed = true
      stopHeartbeat()
      for (const topic of topics.values()) topic.setRecord(undefined)
      if (connections.size > 0) await closeAll()
      await relay?.close()
    }
  }
}
