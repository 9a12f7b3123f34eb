import { createServer, request, type IncomingMessage, type RequestListener, type RequestOptions, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Target } from '../api.js'

/** A server that stands for a container. */
export interface Origin {
  readonly server: Server
  readonly target: Target
  close(): Promise<void>
}

export async function startOrigin (listener: RequestListener, port = 0): Promise<Origin> {
  const server = createServer(listener)
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  const address = server.address() as AddressInfo
  return {
    server,
    target: { deploymentId: `d-${address.port}`, containerId: `c-${address.port}`, host: '127.0.0.1', port: address.port },
    async close () {
      const closed = new Promise(resolve => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    }
  }
}

export interface Answer { readonly status: number, readonly headers: IncomingMessage['headers'], readonly body: string }

/** One request, its answer read whole. */
export function ask (port: number, options: RequestOptions & { body?: string | Buffer } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options
    const outgoing = request({ host: '127.0.0.1', port, ...rest }, answer => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks).toString() }))
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
