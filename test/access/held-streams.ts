import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { allow, definePlugin, sse } from 'busbar/sdk'
import type { TestClient, TestKernel, TestSocket } from 'busbar/sdk/testing'

/** A plugin with an event stream and a socket of a project. */
export const live = {
  manifest: { id: 'live' },
  definition: definePlugin({
    id: 'live',
    routes(route) {
      route({
        method: 'GET',
        url: '/api/projects/:projectId/live',
        summary: 'Stream',
        produces: 'text/event-stream',
        access: allow.token('read', { project: { param: 'projectId' } }),
        handler: ({ signal }) =>
          sse(
            (async function* () {
              for (let n = 0; !signal.aborted; n++) {
                yield { data: String(n) }
                await sleep(10)
              }
            })()
          )
      })
    },
    sockets(socket) {
      socket({
        url: '/api/ws/live/:projectId',
        summary: 'Socket',
        access: allow.token('read', { project: { param: 'projectId' } }),
        handler: async duplex => {
          for await (const message of duplex.messages)
            await duplex.send(JSON.stringify({ channel: 'live', event: 'said', data: String(message) }))
        }
      })
    }
  })
}

export const limitMs = 30_000

/** Everything that stays open, held by one person. */
export interface Held {
  readonly channel: TestSocket
  readonly socket: TestSocket
  readonly streamEnded: Promise<unknown>
}

export async function hold(
  k: TestKernel,
  client: TestClient,
  project: string,
  channel: string
): Promise<Held> {
  const stream = await client.open(`/api/projects/${project}/live`)
  if (stream.statusCode !== 200) throw new Error(`the stream was answered ${String(stream.statusCode)}`)
  await once(stream, 'data')
  stream.resume()
  const held = {
    channel: await k.socket(client),
    socket: await k.socket(client, `/api/ws/live/${project}`),
    streamEnded: once(stream, 'end')
  }
  held.channel.subscribe(channel)
  await hears(k, held.channel, channel, 'first')
  return held
}

/** Says it until it is heard: a subscription is not acknowledged. */
export async function hears(k: TestKernel, socket: TestSocket, channel: string, word: string): Promise<void> {
  const speaking = setInterval(() => {
    k.publish(channel, 'status', { status: word })
  }, 20)
  try {
    await socket.next(
      ({ channel: name, event, data }) => name === channel && event === 'status' && data.status === word,
      limitMs
    )
  } finally {
    clearInterval(speaking)
  }
}
