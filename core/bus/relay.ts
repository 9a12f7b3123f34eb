import { randomUUID } from 'node:crypto'
import type { Clock, Log } from 'busbar/sdk'
import { systemClock } from '../clock/clock.js'
import type { Signals } from '../database/listener.js'
import type { RelayFrame } from './relay-frame.js'
import { collect, RelayPeers } from './relay-peers.js'
import { RelaySender } from './relay-sender.js'

const signalTopic = 'kernel.bus'
const aliveEveryMs = 20_000

interface RelayOptions {
  readonly signals: Signals
  readonly log: Log
  readonly clock?: Clock
}

/** The way to the hubs of other processes. */
export type Relay = ReturnType<typeof createRelay>

/**
 * Live messages between processes over LISTEN and NOTIFY. Each process announces which channels
 * have a subscriber with it, and sends only what another process has subscribers for; alone, it sends nothing but `hello`.
 */
export function createRelay({ signals, log, clock = systemClock() }: RelayOptions) {
  const from = randomUUID()
  const own = new Set<string>()
  const peers = new RelayPeers()
  const sender = new RelaySender(from, data => signals.signal(signalTopic, data), log)
  let changes = new Map<string, boolean>()
  let receive: (channel: string, event: string, data: string) => void = () => {}

  const say = (frame: RelayFrame): void => {
    sender.say(JSON.stringify(frame))
  }
  const hello = (): void => {
    say({ kind: 'hello', from })
  }
  const announceWanted = (): void => {
    say({ kind: 'wants', from, channels: [...own] })
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

  function take(text: string): void {
    const frame = JSON.parse(text) as RelayFrame
    if (frame.from === from) return
    if (frame.kind === 'bye') {
      peers.forget(frame.from)
      return
    }
    const { peer, isNew } = peers.hear(frame.from, clock.now().getTime())
    if (isNew || frame.kind === 'hello') announceWanted()
    // A new peer whose first message is something else was here before us, or was dropped: it must begin again.
    if (isNew && frame.kind !== 'hello' && frame.kind !== 'wants') hello()
    switch (frame.kind) {
      case 'wants':
        peer.channels.clear()
        for (const channel of frame.channels) peer.channels.add(channel)
        break
      case 'more':
        for (const channel of frame.channels) peer.channels.add(channel)
        break
      case 'less':
        for (const channel of frame.channels) peer.channels.delete(channel)
        break
      case 'messages':
        for (const [channel, event, data] of frame.messages) receive(channel, event, JSON.stringify(data))
        break
      case 'piece': {
        const whole = collect(peer, frame)
        if (whole !== undefined) take(whole)
      }
    }
  }

  const stops = [
    signals.onSignal(signalTopic, take),
    signals.onReconnect(() => {
      hello()
      announceWanted()
    }),
    clock.every(aliveEveryMs, () => {
      peers.forgetLost(clock.now().getTime())
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
    /** This process has a subscriber now. */
    watch(channel: string): void {
      own.add(channel)
      change(channel, true)
    },
    unwatch(channel: string): void {
      own.delete(channel)
      change(channel, false)
    },
    onMessage(receiver: typeof receive): void {
      receive = receiver
    },
    /** Says good-bye; resolves when all that was sent has left. */
    async close(): Promise<void> {
      for (const stop of stops) stop()
      if (!peers.isEmpty) say({ kind: 'bye', from })
      await sender.idle()
    }
  }
}
