import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type RequestOptions,
  request,
  type Server
} from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { TrafficTarget } from 'busbar/api/deployments'

/** A server that stands for a container. */
export interface Origin {
  readonly server: Server
  readonly target: TrafficTarget
  close(): Promise<void>
}

export async function startOrigin(listener: RequestListener, port = 0): Promise<Origin> {
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
    target: {
      deploymentId: `d-${address.port}`,
      containerId: `c-${address.port}`,
      host: '127.0.0.1',
      port: address.port
    },
    async close() {
      const closed = new Promise(resolve => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    }
  }
}

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** One request, its answer read whole. */
export function ask(
  port: number,
  options: RequestOptions & { body?: string | Buffer } = {}
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options
    const outgoing = request({ host: '127.0.0.1', port, ...rest }, answer => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          body: Buffer.concat(chunks).toString()
        })
      )
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** What a server says to these bytes until it closes the connection, or says nothing more for `silenceMs`. */
export async function speak(
  port: number,
  bytes: string | Buffer,
  { silenceMs = 2000, more = [] as ReadonlyArray<string | Buffer> } = {}
): Promise<{ readonly said: string; readonly isClosed: boolean }> {
  const socket = connect(port, '127.0.0.1')
  let said = ''
  let isSilent = false
  socket.setTimeout(silenceMs, () => {
    isSilent = true
    socket.destroy()
  })
  socket.on('data', chunk => {
    said += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  const closed = new Promise<void>(resolve => {
    socket.once('close', () => resolve())
  })
  socket.write(bytes)
  for (const piece of more) {
    await new Promise(resolve => setTimeout(resolve, 20))
    socket.write(piece)
  }
  await closed
  return { said, isClosed: !isSilent }
}
