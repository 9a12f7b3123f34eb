import { subscribe } from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'
import { IncomingMessage } from 'node:http'
import { Server, Socket } from 'node:net'
import { currentPlugin, endConnection, type Frame, inConnection, inFrame } from './frames.js'

/**
 * Node calls the listeners of an accepted connection outside the async context in which its server was
 * opened: what they throw would have no owner and end the process. So the events of every server that is
 * opened in a frame, and of its connections, are emitted in that frame, and what a listener throws is
 * handed to the process as an error of that frame (see `uncaught-errors.ts`), after its connection was ended.
 * Requests, answers, timers, promises and outgoing requests made by those listeners inherit the frame.
 */
export function keepServersInFrames(): void {
  if (!isSubscribed) subscribe('tracing:net.server.listen:asyncStart', serverListens)
  isSubscribed = true
}

// As the frames themselves, it is of the process and not of a kernel.
let isSubscribed = false
const contained = Symbol('its events are emitted in a frame')

function serverListens(message: unknown): void {
  const plugin = currentPlugin()
  const { server } = message as { server: unknown }
  if (plugin === undefined || !(server instanceof Server) || contained in server) return
  contain(server, (args, emit) => {
    const socket = socketIn(args)
    return socket === undefined ? inFrame(plugin, emit) : inConnection(frameOf(plugin, socket), emit)
  })
}

/** The connection among the arguments of an event: itself, or that of a request. */
function socketIn(args: readonly unknown[]): Socket | undefined {
  for (const argument of args) {
    if (argument instanceof Socket) return argument
    if (argument instanceof IncomingMessage) return argument.socket
  }
  return undefined
}

const itsFrame = Symbol('the frame of a connection')

function frameOf(plugin: string, socket: Socket & { [itsFrame]?: Frame }): Frame {
  const known = socket[itsFrame]
  if (known !== undefined) return known
  const frame: Frame = { plugin, connection: socket }
  socket[itsFrame] = frame
  contain(socket, (_args, emit, event) => {
    const isHeard = inConnection(frame, emit)
    if (event === 'close') frame.connection = undefined
    return isHeard
  })
  return frame
}

/** From now on the events of `emitter` are emitted by `run`, and what their listeners throw does not reach who emits. */
function contain(
  emitter: EventEmitter,
  run: (args: readonly unknown[], emit: () => boolean, event: string | symbol) => boolean
): void {
  const original = emitter.emit
  const emit = (event: string | symbol, ...args: unknown[]): boolean =>
    run(
      args,
      () => {
        try {
          return original.call(emitter, event, ...args)
        } catch (error) {
          endConnection()
          // Thrown anew, in the same frame: the code of Node that emits must go on to its end.
          process.nextTick(() => {
            throw error
          })
          return false
        }
      },
      event
    )
  Object.assign(emitter, { emit, [contained]: true })
}
