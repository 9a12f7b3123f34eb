import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

const enginePath = (process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock').replace('unix://', '')

/** The engine of the tests behind a socket of its own, whose connections can be cut. */
interface EngineProxy {
  /** For DOCKER_HOST. */
  readonly address: string
  /** Cuts all connections. */
  cut(): void
  /** The same, and refuses others until `up`. */
  down(): void
  up(): void
  /** How many connections are open. */
  readonly open: number
  /** The first line of each request that has come. */
  readonly requests: string[]
}

export async function startEngineProxy(t: Test): Promise<EngineProxy> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-engine-proxy-'))
  const path = join(directory, 'docker.sock')
  const sockets = new Set<Socket>()
  const requests: string[] = []
  let isDown = false
  const server = createServer({ allowHalfOpen: true }, client => {
    if (isDown) {
      client.destroy()
      return
    }
    const engine = connect({ path: enginePath, allowHalfOpen: true })
    client.on('data', (piece: Buffer) => {
      const [, request] = /^([A-Z]+ \/\S*) HTTP\/1/.exec(piece.toString('latin1', 0, 4096)) ?? []
      if (request !== undefined) requests.push(request)
    })
    for (const [one, other] of [
      [client, engine],
      [engine, client]
    ] as const) {
      sockets.add(one)
      one
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(one)
          other.destroy()
        })
    }
    client.pipe(engine).pipe(client)
  })
  await new Promise<void>(resolve => server.listen(path, resolve))
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(async () => {
    cut()
    server.close()
    await rm(directory, { recursive: true, force: true })
  })
  return {
    address: `unix://${path}`,
    cut,
    down() {
      isDown = true
      cut()
    },
    up() {
      isDown = false
    },
    get open() {
      return sockets.size / 2
    },
    requests
  }
}
