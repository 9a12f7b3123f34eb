import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Place } from './dns/zone.js'

const sentence = 'The application is not running.\n'

/**
 * Answers for applications that do not run. Caddy is led here in place of a container, so that neither a stop nor a start changes its
 * configuration.
 */
export async function openStoppedResponder(host: string): Promise<Place & { close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    // What is left of a body is of no interest, and ends with the connection.
    response.writeHead(503, {
      'Content-Type': 'text/plain; charset=utf-8',
      'Content-Length': Buffer.byteLength(sentence),
      'Cache-Control': 'no-store',
      'Retry-After': '5',
      Connection: 'close'
    })
    response.end(request.method === 'HEAD' ? undefined : sentence)
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port: 0, exclusive: true }, resolve)
  })
  server.on('error', () => {})
  return {
    host,
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
    }
  }
}
