import { subscribe } from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import { IncomingMessage } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import { Server, Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { contain, isContained, type Run } from './contained-emitter.js'
import { currentPlugin, type Frame, inConnection, inFrame } from './frames.js'

/**
 * Node calls the listeners of an accepted connection outside the async context in which its server was
 * opened: what they throw would have no owner and end the process. So the events of every server that is
 * opened in a frame, and of its connections, are emitted in that frame, and what a listener throws is
 * handed to the process as an error of that frame (see `uncaught-errors.ts`), after its connection was ended.
 * Requests, answers, timers, promises and outgoing requests made by those listeners inherit the frame. The same holds for
 * the sessions and streams of HTTP/2, which Node makes and calls outside of it too; there, a stream is what an error ends.
 */
export function keepServersInFrames(): void {
  if (!isSubscribed) subscribe('tracing:net.server.listen:asyncStart', serverListens)
  isSubscribed = true
}

// As the frames themselves, it is of the process and not of a kernel.
let isSubscribed = false

function serverListens(message: unknown): void {
  const plugin = currentPlugin()
  const { server } = message as { server: unknown }
  if (plugin === undefined || !(server instanceof Server) || isContained(server)) return
  const run: Run = (args, emit, event) => {
    const [session] = args
    if (event === 'session' && session instanceof EventEmitter && !isContained(session)) contain(session, run)
    const connection = connectionIn(args)
    if (connection !== undefined) return inConnection(frameOf(plugin, connection), emit)
    // A request of HTTP/2 is told of within the event of its stream.
    return currentPlugin() === plugin ? emit() : inFrame(plugin, emit)
  }
  contain(server, run)
}

type Connection = Socket | ServerHttp2Stream

/** The connection among the arguments of an event: itself, or that of a request. */
function connectionIn(args: readonly unknown[]): Connection | undefined {
  for (const argument of args) {
    if (argument instanceof IncomingMessage) return argument.socket
    if (argument instanceof Socket || isHttp2Stream(argument)) return argument
  }
  return undefined
}

// Its class is not exported. The requests of `request` come after a `stream`, of which they are made.
const isHttp2Stream = (value: unknown): value is ServerHttp2Stream =>
  value instanceof Duplex && 'rstCode' in value

/** INTERNAL_ERROR of RFC 9113. */
const http2InternalError = 2

function ending(connection: Connection): NonNullable<Frame['connection']> {
  if (!isHttp2Stream(connection)) return connection
  return {
    // Not at once: Node ends the process when a stream is destroyed while it is asked for its trailers.
    destroy: () => {
      setImmediate(() => {
        connection.close(http2InternalError)
        connection.destroy()
      })
    }
  }
}

const itsFrame = Symbol('the frame of a connection')

function frameOf(plugin: string, connection: Connection & { [itsFrame]?: Frame }): Frame {
  const known = connection[itsFrame]
  if (known !== undefined) return known
  const frame: Frame = { plugin, connection: ending(connection) }
  connection[itsFrame] = frame
  contain(connection, (_args, emit, event) => {
    const isHeard = inConnection(frame, emit)
    if (event === 'close') frame.connection = undefined
    return isHeard
  })
  return frame
}
