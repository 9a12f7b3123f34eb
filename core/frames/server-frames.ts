import { subscribe } from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'
import { IncomingMessage } from 'node:http'
import { Server, Socket } from 'node:net'
import { currentPlugin, endConnection, inConnection, inFrame, type Served } from './frames.js'

/**
 * Node calls the listeners of an accepted connection outside the async context in which its server was
 * opened: what they throw would have no owner and end the process. So the events of every server that is
 * opened in a frame, and of its connections, are emitted in that frame, and what a listener throws is
 * handed to the process as an error of that frame (see `strays.ts`), after its connection was ended.
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
  emitIn(server, (args, emit) => {
    const socket = args.map(socketOf).find(found => found !== undefined)
    if (socket === undefined) inFrame(plugin, emit)
    else inConnection(plugin, servedBy(plugin, socket), emit)
  })
}

/** The connection in an argument of an event: itself, or that of a request. */
function socketOf(argument: unknown): Socket | undefined {
  if (argument instanceof Socket) return argument
  return argument instanceof IncomingMessage ? argument.socket : undefined
}

const servedOf = Symbol('the connection as frames hold it')

function servedBy(plugin: string, socket: Socket & { [servedOf]?: Served }): Served {
  const known = socket[servedOf]
  if (known !== undefined) return known
  const served: Served = { connection: socket }
  socket[servedOf] = served
  emitIn(socket, (_args, emit, event) => {
    inConnection(plugin, served, emit)
    if (event === 'close') served.connection = undefined
  })
  return served
}

function emitIn(
  emitter: EventEmitter,
  run: (args: readonly unknown[], emit: () => void, event: string | symbol) => void
): void {
  const original = emitter.emit
  const emit = (event: string | symbol, ...args: unknown[]): boolean => {
    let isHeard = false
    run(
      args,
      () => {
        try {
          isHeard = original.call(emitter, event, ...args)
        } catch (error) {
          endConnection()
          // Thrown anew, in the same frame: the code of Node that emits must go on to its end.
          process.nextTick(() => {
            throw error
          })
        }
      },
      event
    )
    return isHeard
  }
  Object.assign(emitter, { emit, [contained]: true })
}
