import { randomUUID } from 'node:crypto'
import type { Clock, Log } from 'busbar/sdk'
import { systemClock } from '../clock/clock.js'
import type { BulkSignals } from '../database/listener.js'
import type { RelayFrame } from './relay-frame.js'
import { RelayInbox } from './relay-inbox.js'
import { collect, RelayPeers } from './relay-peers.js'
import { RelaySender } from './relay-sender.js'

const signalTopic = 'kernel.bus'
const aliveEveryMs = 20_000

interface RelayOptions {
  readonly signals: BulkSignals
  readonly log: Log
  readonly clock?: Clock
}

/** The way to the hubs of other processes. */
export type Relay = ReturnType<typeof createRelay>

/**
 * Live messages between processes over LISTEN and NOTIFY. Each process announces which channels
 * have a subscriber with it, and sends only what another process has subscribers for, and states; alone, it sends nothing but `hello`
 * and these.
 * How many sockets users have is announced too: what a user may have is theirs in all processes together.
 */
export function createRelay({ signals, log, clock = systemClock() }: RelayOptions) {
  const from = randomUUID()
  const own = new Set<string>()
  const ownSockets = new Map<string, number>()
  const changedUsers = new Set<string>()
  const peers = new RelayPeers()
  const sender = new RelaySender(
    from,
    frames => signals.signalAll(signalTopic, frames),
    log,
    hasLostControl => {
      say({ kind: 'gap', from })
      if (hasLostControl) announceAll()
    }
  )
  let changes = new Map<string, boolean>()
  let receive: (channel: string, event: string, data: string, from: string) => void = () => {}
  let tellGap: () => void = () => {}

  const say = (frame: RelayFrame): void => {
    sender.say(JSON.stringify(frame))
  }
  const hello = (): void => {
    say({ kind: 'hello', from })
  }
  const announceAll = (): void => {
    say({ kind: 'wants', from, channels: [...own] })
    if (ownSockets.size > 0)
      say({ kind: 'sockets', from, counts: Object.fromEntries(ownSockets), isWhole: true })
  }

  /** A channel that came and went within a tick is not announced. */
  function change(channel: string, isWanted: boolean): void {
    if (peers.isEmpty) return
    if (changes.size === 0) setImmediate(announceChanges)
    changes.set(channel, isWanted)
  }

  function announceChanges(): void {
    const said = [...changes]
    changes = new Map()
    for (const [kind, isWanted] of [
      ['more', true],
      ['less', false]
    ] as const) {
      const channels = said.filter(entry => entry[1] === isWanted).map(entry => entry[0])
      if (channels.length > 0) say({ kind, from, channels })
    }
  }

  function announceSockets(): void {
    const counts = Object.fromEntries([...changedUsers].map(user => [user, ownSockets.get(user) ?? 0]))
    changedUsers.clear()
    say({ kind: 'sockets', from, counts, isWhole: false })
  }

  function take(frame: RelayFrame): void {
    if (frame.kind === 'bye') {
      peers.forget(frame.from)
      return
    }
    const { peer, isNew } = peers.hear(frame.from, clock.elapsed())
    if (isNew || frame.kind === 'hello') announceAll()
    // A new peer whose first message is something else was here before us, or was dropped: it must begin again.
    if (isNew && frame.kind !== 'hello' && frame.kind !== 'wants') hello()
    switch (frame.kind) {
      case 'wants':
        peer.channels.clear()
        for (const channel of frame.channels) peer.channels.add(channel)
        break
      case 'gap':
        tellGap()
        break
      case 'more':
        for (const channel of frame.channels) peer.channels.add(channel)
        break
      case 'less':
        for (const channel of frame.channels) peer.channels.delete(channel)
        break
      case 'sockets':
        if (frame.isWhole) peer.sockets.clear()
        for (const [user, count] of Object.entries(frame.counts))
          if (count > 0) peer.sockets.set(user, count)
          else peer.sockets.delete(user)
        break
      case 'messages':
        for (const [channel, event, data] of frame.messages)
          receive(channel, event, JSON.stringify(data), frame.from)
        break
      case 'piece': {
        const whole = collect(peer, frame)
        if (whole !== undefined) take(JSON.parse(whole) as RelayFrame)
      }
    }
  }

  const inbox = new RelayInbox(from, take, () => tellGap(), log)
  const stops = [
    signals.onSignal(signalTopic, text => {
      inbox.add(text)
    }),
    signals.onReconnect(() => {
      hello()
      announceAll()
      tellGap()
    }),
    clock.every(aliveEveryMs, () => {
      // It may have changed something and ended before it said so.
      if (peers.forgetLost(clock.elapsed())) tellGap()
      if (!peers.isEmpty) say({ kind: 'alive', from })
    })
  ]
  hello()

  return {
    /** True while another process has a subscriber. */
    isWanted: (channel: string): boolean => peers.isWanted(channel),
    /** At most once, in order for each channel; `data` is JSON. */
    send(channel: string, event: string, data: string): void {
      sender.send(channel, event, data)
    },
    /** Resolves when what is sent on the channel next has room, at once where nobody elsewhere wants it; never rejects. */
    async room(channel: string): Promise<void> {
      if (peers.isWanted(channel)) await sender.room()
    },
    /** Messages that were to leave this process, or to come into it, and did not. */
    get lost(): number {
      return sender.lost + inbox.lost
    },
    /** This process has a subscriber now. */
    watch(channel: string): void {
      own.add(channel)
      change(channel, true)
    },
    unwatch(channel: string): void {
      own.delete(channel)
      change(channel, false)
    },
    /** A user has so many sockets with this process now. */
    countSockets(userId: string, count: number): void {
      if (count > 0) ownSockets.set(userId, count)
      else ownSockets.delete(userId)
      if (peers.isEmpty) return
      if (changedUsers.size === 0) setImmediate(announceSockets)
      changedUsers.add(userId)
    },
    /** How many a user has with the others, as far as it is known: two that are opened at the same moment may both be let in. */
    socketsElsewhere: (userId: string): number => peers.socketsOf(userId),
    onMessage(receiver: typeof receive): void {
      receive = receiver
    },
    /** `listener` is called when messages of others may have been lost. */
    onGap(listener: () => void): void {
      tellGap = listener
    },
    /** Says good-bye; resolves when all that was sent has left. */
    async close(): Promise<void> {
      for (const stop of stops) stop()
      inbox.close()
      if (!peers.isEmpty) say({ kind: 'bye', from })
      await sender.close()
    }
  }
}
