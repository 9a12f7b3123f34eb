/** A process of its own for `uncaught-errors.test.ts`: a server in a frame, and no platform that would end its connections. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { currentPlugin, inFrame } from '../../core/frames/frames.js'
import { keepServersInFrames } from '../../core/frames/server-frames.js'

keepServersInFrames()
let accepted: Socket | undefined
process.on('uncaughtException', error => {
  const told = { message: error.message, plugin: currentPlugin(), isEnded: accepted?.destroyed }
  process.send?.(told, () => process.exit(0))
})
const server = createServer(socket => {
  accepted = socket
  socket.on('data', () => {
    throw new Error('thrown by a listener')
  })
})
inFrame('probe', () =>
  server.listen(0, '127.0.0.1', () => {
    connect((server.address() as AddressInfo).port, '127.0.0.1')
      .on('error', () => {})
      .write('x')
  })
)
