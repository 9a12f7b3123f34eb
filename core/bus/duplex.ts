import { once } from 'node:events'
import { type DuplexSocket, Turns } from 'busbar/sdk'
import { createWebSocketStream, type WebSocket } from 'ws'
import { inFrame } from '../frames/frames.js'

/**
 * A plugin's end of a WebSocket: frames as an iterable, sends with backpressure, no access to the socket. Those of one
 * owner, its user, send in turns.
 */
export function duplexOf(
  socket: WebSocket,
  plugin: string,
  pluginSignal: AbortSignal,
  owner: string
): DuplexSocket {
  const stream = createWebSocketStream(socket, { readableObjectMode: true, decodeStrings: false })
  const closed = new AbortController()
  const turns = new Turns(owner)
  socket.once('close', () => {
    inFrame(plugin, () => {
      closed.abort(new Error('the socket is closed'))
    })
  })
  stream.on('error', () => {
    socket.terminate()
  })
  const stop = (): void => {
    socket.close(1001, 'the plugin is being turned off')
  }
  pluginSignal.addEventListener('abort', stop, { once: true })
  closed.signal.addEventListener(
    'abort',
    () => {
      pluginSignal.removeEventListener('abort', stop)
    },
    { once: true }
  )
  return {
    // A handler that stops reading has not lost the connection: it may still send why it ends.
    messages: { [Symbol.asyncIterator]: () => stream.iterator({ destroyOnReturn: false }) },
    send: async data => {
      closed.signal.throwIfAborted()
      if (!stream.write(data)) await once(stream, 'drain', { signal: closed.signal })
      // A handler that only sends would leave no turn to other connections while its client keeps up.
      if (turns.isOver) await turns.pass()
    },
    close: (code, reason) => {
      socket.close(code, reason)
    },
    signal: closed.signal
  }
}
