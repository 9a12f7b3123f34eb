import { setTimeout as sleep } from 'node:timers/promises'
import { allow, definePlugin, kernel, sse, Type } from 'busbar/sdk'

export const tickMs = 100

/** What an open connection sees while other plugins come and go: an event stream and a channel. */
export const streamingPlugin = definePlugin({
  id: 'bench',
  needs: { bus: kernel.bus },
  start({ use, onStop }) {
    const timer = setInterval(() => {
      use.bus.publish('bench', 'tick', 0)
    }, tickMs)
    onStop(() => {
      clearInterval(timer)
    })
    return {}
  },
  routes(route) {
    route({
      method: 'GET',
      url: '/api/bench/ticks',
      summary: 'Ticks',
      access: allow.token('read', { project: 'none' }),
      handler: ({ signal }) => sse(ticks(signal))
    })
  },
  channels(channel) {
    channel({
      name: 'bench',
      summary: 'Ticks',
      events: { tick: Type.Any() },
      access: allow.token('read', { project: 'none' })
    })
  }
})

async function* ticks(signal: AbortSignal): AsyncGenerator<{ event: string; data: string }> {
  while (!signal.aborted) {
    yield { event: 'tick', data: '0' }
    await sleep(tickMs)
  }
}
