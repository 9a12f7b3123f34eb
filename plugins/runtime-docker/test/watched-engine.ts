import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

const enginePath = (process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock').replace('unix://', '')

/**
 * The engine of the tests behind a socket of its own; `before` is told of each request, as `GET /version`, before the
 * engine is. Each comes by a connection of its own.
 */
export async function watchedEngine(
  t: Test,
  before: (asked: string) => Promise<void> | void
): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-watched-'))
  const path = join(directory, 'docker.sock')
  const sockets = new Set<Socket>()
  const hand = async (client: Socket): Promise<void> => {
    const [first] = (await once(client, 'data')) as [Buffer]
    client.pause()
    await before(first.toString('latin1').split(' ', 2).join(' '))
    const engine = connect({ path: enginePath, allowHalfOpen: true })
    sockets.add(engine.on('error', () => client.destroy()).on('close', () => sockets.delete(engine)))
    client.on('close', () => engine.destroy())
    engine.write(first)
    client.pipe(engine).pipe(client)
  }
  const server = createServer({ allowHalfOpen: true }, client => {
    sockets.add(client.on('error', () => {}).on('close', () => sockets.delete(client)))
    hand(client).catch(() => client.destroy())
  })
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await rm(directory, { recursive: true, force: true })
  })
  return `unix://${path}`
}
