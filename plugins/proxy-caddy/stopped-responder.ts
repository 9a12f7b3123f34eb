import { createServer } from 'node:http'
import { openResponder, type Responder } from './responder.js'

const sentence = 'The application is not running.\n'

/**
 * Answers for applications that do not run. Caddy is led here in place of a container, so that neither a stop nor a start changes its
 * configuration.
 */
export async function openStoppedResponder(host: string): Promise<Responder> {
  const server = createServer((request, response) => {
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
  return await openResponder(server, { host, port: 0 })
}
