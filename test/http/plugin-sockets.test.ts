/** What the kernel does for the WebSockets that plugins declare. */
import { once } from 'node:events'
import { allow, definePlugin, described, Type } from 'busbar/sdk'
import { createTestKernel, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { WebSocket } from 'ws'

const heard: string[] = []
const lost: string[] = []
const stops: Array<() => void> = []
const rooms = definePlugin({
  id: 'rooms',
  sockets(socket) {
    socket({
      url: '/api/ws/rooms/:roomId',
      operationId: 'EnterRoom',
      group: 'Rooms',
      summary: 'Enter Room',
      description: 'Everything is said back.',
      problems: [{ status: 409, code: 'E_ROOM_FULL', message: 'the room is full' }],
      access: allow.session({ project: 'none' }),
      params: { roomId: described(Type.String({ pattern: '^[0-9a-f]{4}$' }), 'Four hexadecimal digits.') },
      handler: async duplex => {
        for await (const message of duplex.messages) {
          heard.push(String(message))
          if (message === 'end') duplex.close(4000, 'told to')
          else await duplex.send(String(message))
        }
      }
    })
    socket({
      url: '/api/ws/walls',
      summary: 'Talk to a wall',
      access: allow.session({ project: 'none' }),
      handler: async ({ signal }) => {
        await once(signal, 'abort')
        lost.push('a wall')
      }
    })
    socket({
      url: '/api/ws/desks/:projectId',
      summary: 'Sit at a desk',
      access: allow.session({ project: 'none' }),
      accept: async ({ requireProject, watchAccess, params, caller }) => {
        await requireProject(params.projectId ?? '', 'editor')
        stops.push(watchAccess(() => lost.push(caller.user.username)))
      },
      handler: async duplex => {
        await duplex.send('{"at": "the desk"}')
        for await (const _ of duplex.messages) return
      }
    })
  }
})

const clock = testClock()
let k: TestKernel

test('a platform starts', async () => {
  k = await createTestKernel({ inline: [{ manifest: { id: 'rooms' }, definition: rooms }], clock })
})

const open = async (path: string): Promise<WebSocket> => {
  const { credential } = await k.as.session()
  const socket = new WebSocket(k.url.replace('http', 'ws') + path, { headers: credential })
  await once(socket, 'open')
  return socket
}
const closeOf = async (socket: WebSocket): Promise<readonly [code: number, reason: string]> => {
  const [code, reason] = (await once(socket, 'close', { signal: AbortSignal.timeout(20_000) })) as [
    number,
    Buffer
  ]
  return [code, reason.toString()]
}

test('a parameter in the path is as its socket says, and everything of the socket is in the description', async t => {
  const admin = await k.as.session()
  await t.rejects(k.socket(admin, '/api/ws/rooms/nowhere'), /400/)
  const socket = await open('/api/ws/rooms/00ff')
  socket.close()
  const { paths } = (await admin.get('/api/openapi.json')).body
  t.match(paths['/api/ws/rooms/{roomId}'].get, {
    operationId: 'EnterRoom',
    tags: ['Rooms'],
    description: /^Everything is said back\./,
    parameters: [
      { name: 'roomId', schema: { pattern: '^[0-9a-f]{4}$' }, description: 'Four hexadecimal digits.' }
    ],
    responses: { 409: Object, 426: Object }
  })
})

test('a client that is dead loses its socket, and one whose bytes move keeps it', async t => {
  const [dead, alive, slow] = [
    await open('/api/ws/rooms/0001'),
    await open('/api/ws/rooms/0002'),
    await open('/api/ws/rooms/0003')
  ]
  const ends: string[] = []
  for (const [name, socket] of Object.entries({ dead, alive, slow }))
    socket.on('close', () => ends.push(name))
  for (const socket of [dead, slow]) socket.pause()
  const pinged = once(alive, 'ping')
  await clock.advance(30_000)
  await pinged
  // It has not read the ping, but it sends.
  const said = heard.length
  slow.send('still here')
  await until(() => heard.length > said, 'what it sends arrives')
  await until(() => !isAwaited(alive), 'the answer of the one that reads has arrived')
  await clock.advance(10_000)
  dead.resume()
  await until(() => ends.length > 0, 'the dead one is gone')
  t.same(ends, ['dead'])
  for (const socket of [alive, slow]) socket.terminate()
})

/** An echo shows that what was sent before it has arrived. */
function isAwaited(socket: WebSocket): boolean {
  const word = 'after the pong'
  if (heard.includes(word)) return false
  socket.send(word)
  return true
}

test('a client that has gone is noticed also where nothing is taken from it', async t => {
  const socket = await open('/api/ws/walls')
  for (let n = 0; n < 200; n++) socket.send('x'.repeat(60_000))
  await until(() => socket.bufferedAmount > 2 ** 20, 'it waits')
  socket.terminate()
  const gone = async (): Promise<boolean> => {
    await clock.advance(30_000)
    return lost.includes('a wall')
  }
  await until(gone, 'its socket is closed')
  t.same(lost.splice(0), ['a wall'])
})

test('a frame that is too large is answered with 1009', async t => {
  const socket = await open('/api/ws/rooms/0001')
  const closing = closeOf(socket)
  socket.send('x'.repeat(10 * 2 ** 20))
  t.equal((await closing)[0], 1009)
})

test('nothing is received after a socket was closed by its plugin', async t => {
  const socket = await open('/api/ws/rooms/0001')
  const closing = closeOf(socket)
  const before = heard.length
  for (const word of ['end', 'one', 'two']) socket.send(word)
  t.same(await closing, [4000, 'told to'])
  t.same(heard.slice(before), ['end'])
})

test('a project that is named by the plugin is checked as one from the path, and followed, also beyond the socket', async t => {
  const [ann, vic] = [await k.as.session('ann'), await k.as.session('vic')]
  const project = (await ann.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const path = `/api/projects/${project}/members`
  const be = async (role: string) => {
    const { email } = await k.user('vic')
    t.equal((await ann.put(path, { email, role })).status, 200)
  }
  const desk = `/api/ws/desks/${project}`
  await t.rejects(k.socket(vic, desk), /404/)
  await be('viewer')
  await t.rejects(k.socket(vic, desk), /403/)
  await be('editor')
  const [socket, closed] = [await k.socket(vic, desk), await k.socket(vic, desk)]
  await closed.close()
  const other = await k.socket(ann, desk)
  await be('viewer')
  t.equal(await socket.closed(20_000), 1008)
  await until(() => lost.length === 2, 'both are told')
  t.same(lost, ['vic', 'vic'])
  t.equal(other.closeCode, undefined)
  await other.close()
  for (const stop of stops) stop()
})

test('the platform stops', async () => {
  await k.close()
})
