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
  // One that breaks is closed by ws: at once, or after it has told a client what is wrong with its frame.
  stream.on('error', () => {})
  socket.on('error', () => {})
  let isClosing = false
  const close: DuplexSocket['close'] = (code, reason) => {
    isClosing = true
    socket.close(code, reason)
    // The client's answer stands behind what it has sent, which nobody takes any more.
    socket.removeAllListeners('message')
    socket.resume()
  }
  const stop = (): void => {
    close(1001, 'the plugin is being turned off')
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
    messages: { [Symbol.asyncIterator]: received },
    send: async data => {
      closed.signal.throwIfAborted()
      // Nothing may follow a close frame.
      if (isClosing) throw new Error('the socket is being closed')
      if (!stream.write(data)) await once(stream, 'drain', { signal: closed.signal })
      // A handler that only sends would leave no turn to other connections while its client keeps up.
      if (turns.isOver) await turns.pass()
    },
    close,
    signal: closed.signal
  }

  async function* received(): AsyncGenerator<string | Buffer> {
    for await (const message of stream.iterator({ destroyOnReturn: false })) {
      // Whoever has lost their access may go on sending for as long as it takes them to answer a close.
      if (isClosing) return
      yield message as string | Buffer
    }
  }
}
