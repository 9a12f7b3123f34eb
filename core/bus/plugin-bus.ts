import type { Bus } from 'busbar/sdk'
import type { Signals } from '../database/listener.js'
import { inFrame } from '../frames/frames.js'
import type { Hub } from './hub.js'

/** The bus as one plugin has it: third-party plugins publish on their own channels only, signals stay within the plugin. */
export function pluginBus({
  id,
  builtIn,
  hub,
  signals
}: {
  id: string
  builtIn: boolean
  hub: Hub
  signals: Signals
}): Bus {
  const prefix = `x:${id}:`
  return Object.freeze({
    publish: (channel, event, data) => {
      if (!builtIn && !channel.startsWith(prefix))
        throw new Error(`"${id}" publishes on "${channel}"; its channels begin with "${prefix}"`)
      hub.publish(channel, event, data)
    },
    hasSubscribers: channel => hub.hasSubscribers(channel),
    room: async channel => {
      await hub.room(channel)
    },
    signal: async (topic, data, tx) => {
      await signals.signal(`${id}:${topic}`, data, tx)
    },
    onSignal: (topic, listener) =>
      signals.onSignal(`${id}:${topic}`, data => {
        inFrame(id, () => {
          listener(data)
        })
      })
  } satisfies Bus)
}
