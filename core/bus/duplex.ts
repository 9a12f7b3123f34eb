import { createWebSocketStream, type WebSocket } from 'ws'
import { once } from 'node:events'
import type { DuplexSocket } from 'busbar/sdk'

/** A plugin's end of a WebSocket: frames as an iterable, sends with backpressure, no access to the socket. */
export function duplexOf (socket: WebSocket, pluginSignal: AbortSignal): DuplexSocket {
  const stream = createWebSocketStream(socket, { readableObjectMode: true, decodeStrings: false })
  const closed = new AbortController()
  socket.once('close', () => { closed.abort(new Error('the socket is closed')) })
  stream.on('error', () => { socket.terminate() })
  const stop = (): void => { socket.close(1001, 'the plugin is being turned off') }
  pluginSignal.addEventListener('abort', stop, { once: true })
  closed.signal.addEventListener('abort', () => { pluginSignal.removeEventListener('abort', stop) }, { once: true })
  return {
    // A handler that stops reading has not lost the connection: it may still say why it ends.
    messages: { [Symbol.asyncIterator]: () => stream.iterator({ destroyOnReturn: false }) },
    send: async data => {
      if (!stream.write(data)) await once(stream, 'drain', { signal: closed.signal })
    },
    close: (code, reason) => { socket.close(code, reason) },
    signal: closed.signal
  }
}
