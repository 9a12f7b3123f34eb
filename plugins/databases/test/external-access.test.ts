import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { goOn, projectOf } from './crash-lab.js'
import { createDatabase, startLab } from './lab.js'

const redis = { type: 'other', image: 'redis:7', container_port: 6379 }

/** Signed in through the port, and answered. */
async function signedIn(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port })
  socket.on('error', () => {})
  socket.write('PING\r\n')
  const [answer] = (await once(socket, 'data', { signal: AbortSignal.timeout(20_000) })) as [Buffer]
  if (answer.toString() !== '+PONG\r\n') throw new Error(`it answers ${answer.toString()}`)
  return socket
}

const untilClosed = async (socket: Socket): Promise<void> => {
  await until(() => socket.closed, 'the connection to be closed')
}

test('external access of a database', async t => {
  if (!(await requireDatabaseImages(t))) return
  const first = await createTestKernel()
  const lab = await projectOf(first)
  const made = await createDatabase(lab, redis)
  const { path } = made
  const { state } = first
  const portOf = async (ann: typeof lab.ann): Promise<number> =>
    await until(async () => (await ann.get(path)).body.external_access?.host_port, 'its port', 40_000)
  const set = async (ann: typeof lab.ann, enabled: boolean): Promise<void> => {
    t.match(await ann.post(`${path}/external-access`, { enabled }), { status: 202 })
  }

  await set(lab.ann, true)
  const port = await portOf(lab.ann)
  await t.test('closes the connections that came by it when it is turned off', async () => {
    const socket = await signedIn(port)
    await set(lab.ann, false)
    await untilClosed(socket)
  })

  await t.test('that is turned off and on at once has closed them too, and shows its port', async t => {
    await set(lab.ann, true)
    const socket = await signedIn(await portOf(lab.ann))
    // Both come between two looks, as of somebody who is quick, or a process that is slow.
    await first.query(`update databases.database set external_port = null where id = '${made.id}'`)
    await set(lab.ann, true)
    await untilClosed(socket)
    const again = await signedIn(await portOf(lab.ann))
    again.destroy()
    t.equal(typeof (await portOf(lab.ann)), 'number')
  })

  await t.test('has the number of before after the platform has started again', async t => {
    const before = await portOf(lab.ann)
    await first.stop()
    const k = await goOn(t, state)
    const ann = await k.as.session('ann')
    t.equal(await portOf(ann), before)
    await until(
      async () =>
        await signedIn(before).then(
          socket => socket.destroy(),
          () => undefined
        ),
      'the port'
    )
  })
})

test('external access whose port another program has gets another one', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await createDatabase(lab, redis)
  const other = createServer(socket => socket.destroy())
  await once(other.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => other.close())
  const address = other.address()
  if (address === null || typeof address === 'string') throw new Error('it has no port')
  // As it was opened by a platform that has ended since.
  await k.query('update databases.database set external_port = $1', [address.port])
  t.match(await ann.post(`${made.path}/external-access`, { enabled: true }), { status: 202 })
  const port = await until(
    async () => {
      const found = (await ann.get(made.path)).body.external_access?.host_port
      return found === undefined || found === address.port ? undefined : found
    },
    'another port',
    120_000
  )
  ;(await signedIn(port)).destroy()
})
