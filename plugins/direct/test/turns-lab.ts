import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { openForwarder } from '../forwarder.js'
import { startOrigin } from './origin.js'

export const mib = 1024 * 1024
const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'

/** A forwarder to an application, and the sockets that it holds, to both sides. */
export async function forwarding(
  t: Test,
  application: { request?: RequestListener; upgraded?: (socket: Socket) => void }
) {
  const origin = await startOrigin(application.request ?? ((_, response) => response.end('ok')))
  origin.server.on('upgrade', (_, socket: Socket) => {
    socket.on('error', () => {})
    socket.write(switching)
    application.upgraded?.(socket)
  })
  const forwarder = await openForwarder({ host: '127.0.0.1', port: 0 }, origin.target)
  const clients: Socket[] = []
  const containers: Socket[] = []
  const noteClient = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket }
    if (socket.localPort === forwarder.port) clients.push(socket)
  }
  const noteContainer = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket }
    socket.once('connect', () => {
      if (socket.remotePort === origin.target.port) containers.push(socket)
    })
  }
  subscribe('net.server.socket', noteClient)
  subscribe('net.client.socket', noteContainer)
  t.teardown(async () => {
    unsubscribe('net.server.socket', noteClient)
    unsubscribe('net.client.socket', noteContainer)
    await forwarder.close()
    await origin.close()
  })
  return { forwarder, held: { clients, containers } }
}

/** How much was read of all these in each turn of the event loop, until `isOver`. */
export async function readInTurns(sockets: readonly Socket[], isOver: () => boolean): Promise<number[]> {
  const read = (): number => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  const turns: number[] = []
  let before = read()
  let isEnded = false
  const turn = (): void => {
    const now = read()
    if (now > before) turns.push(now - before)
    before = now
    if (!isEnded) setImmediate(turn)
  }
  turn()
  await until(isOver, 'everything has been handed on').finally(() => {
    isEnded = true
  })
  return turns
}

export async function mostInOneTurn(sockets: readonly Socket[], isOver: () => boolean): Promise<number> {
  return Math.max(...(await readInTurns(sockets, isOver)))
}
