import type { Socket } from 'node:net'

type Parser = Record<string, unknown>

/** What Node's parser calls for the parts of messages. */
const callbacks = new Set([
  'parserOnHeaders',
  'parserOnHeadersComplete',
  'parserOnBody',
  'parserOnMessageComplete'
])

/**
 * Nothing more that comes on this connection of HTTP becomes a message or a part of one; for a connection that is about to
 * end. Without this Node goes through all of what it has read, though the connection is destroyed in the middle of it:
 * of 64 KiB it may make ten thousand chunks, or thousands of answers. It has no means of its own for that; should another
 * version call these functions something else, the connection ends all the same, and costs what it did.
 */
export function stopParsing(socket: Socket & { readonly parser?: Parser | null }): void {
  const { parser } = socket
  if (parser === null || parser === undefined) return
  const muted = Object.entries(parser).filter(
    ([, callback]) => typeof callback === 'function' && callbacks.has(callback.name)
  )
  for (const [key] of muted) parser[key] = null
  // Node keeps the parser for another connection, when this one has closed.
  socket.prependOnceListener('close', () => {
    Object.assign(parser, Object.fromEntries(muted))
  })
}
