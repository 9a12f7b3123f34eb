import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import type { Forwarder } from '../forwarder.js'
import { forwarding, mib, mostInOneTurn } from './turns-lab.js'

const upgrade = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'

async function upgraded(t: Test, { port }: Forwarder, count: number, localAddress = '127.0.0.1') {
  return await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
      socket.on('error', () => {})
      t.teardown(() => {
        socket.destroy()
      })
      socket.write(upgrade)
      await once(socket, 'data')
      return socket
    })
  )
}

/** What a socket says from now on, and whether it has ended. */
function listen(socket: Socket): { said: string; hasEnded: boolean } {
  const heard = { said: '', hasEnded: false }
  socket.on('data', data => {
    heard.said += String(data)
  })
  socket.on('end', () => {
    heard.hasEnded = true
  })
  return heard
}

const each = Buffer.alloc(3 * mib, 'x')

test('joined sockets hand on so much in a turn of the event loop, all together, and end as their sides do', async t => {
  let arrived = 0
  const { forwarder, held } = await forwarding(t, {
    upgraded: socket => {
      socket.on('data', data => {
        arrived += data.length
      })
      socket.on('end', () => socket.end('all has come'))
    }
  })
  const clients = await upgraded(t, forwarder, 60)
  const heard = clients.map(listen)
  for (const socket of clients) socket.end(each)
  const most = await mostInOneTurn(held.clients, () => heard.every(({ hasEnded }) => hasEnded))
  t.equal(arrived, 60 * each.length)
  t.same([...new Set(heard.map(({ said }) => said))], ['all has come'])
  // When all begin at once, Node reads each of them twice before it looks at whether it may.
  t.ok(most <= 10 * mib, `${most / mib} MiB`)
  await until(
    () => [...held.clients, ...held.containers].every(({ destroyed }) => destroyed),
    'the sockets are closed'
  )
})

test('what an application sends through joined sockets counts as well', async t => {
  const containers: Socket[] = []
  const { forwarder, held } = await forwarding(t, {
    upgraded: socket => {
      containers.push(socket)
    }
  })
  const clients = await upgraded(t, forwarder, 60)
  const heard = clients.map(socket => {
    const count = { bytes: 0 }
    socket.on('data', data => {
      count.bytes += data.length
    })
    return count
  })
  for (const socket of containers) socket.end(each)
  const most = await mostInOneTurn(held.containers, () => heard.every(({ bytes }) => bytes >= each.length))
  t.same([...new Set(heard.map(({ bytes }) => bytes))], [each.length])
  t.ok(most <= 10 * mib, `${most / mib} MiB`)
})

test('a client that reads nothing is sent no more than fits, and its application waits', async t => {
  let container: Socket | undefined
  const { forwarder, held } = await forwarding(t, {
    upgraded: socket => {
      container = socket
    }
  })
  const [client] = await upgraded(t, forwarder, 1)
  client?.pause()
  const much = Buffer.alloc(64 * mib, 'x')
  container?.write(much)
  const written = (): number => (container?.bytesWritten ?? 0) - (container?.writableLength ?? 0)
  let last = -1
  await until(() => {
    const isStill = written() === last
    last = written()
    return isStill && last > 0
  }, 'nothing moves any more')
  t.ok((held.clients[0]?.writableLength ?? 0) <= mib, 'next to nothing is kept for the client')
  t.ok((container?.writableLength ?? 0) > 0, 'the application is held up')
  let bytes = 0
  client?.on('data', data => {
    bytes += data.length
  })
  client?.resume()
  await until(() => bytes === much.length, 'all of it has come')
})

test('a socket with little to say does not wait for all that have much', async t => {
  const { forwarder, held } = await forwarding(t, { upgraded: socket => socket.pipe(socket) })
  const [one] = await upgraded(t, forwarder, 1, '127.0.0.2')
  const many = await upgraded(t, forwarder, 100)
  let isOver = false
  for (const socket of many) {
    socket.resume()
    const push = (): void => {
      while (!isOver && socket.write(each.subarray(0, mib)));
    }
    socket.on('drain', push)
    push()
  }
  const ofOthers = (): number => held.clients.slice(1).reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  await until(() => ofOthers() > 100 * mib, 'all the others are busy')
  const between: number[] = []
  for (let round = 0; round < 10; round++) {
    const before = ofOthers()
    one?.write('hello')
    if (one !== undefined) await once(one, 'data')
    between.push((ofOthers() - before) / mib)
  }
  isOver = true
  // A turn or two for each way, of the two hundred that wait.
  t.ok(Math.max(...between) <= 25, `${between.join(' ')} MiB of others meanwhile`)
})

test('when one side of joined sockets fails, the other ends too', async t => {
  const containers: Socket[] = []
  const { forwarder } = await forwarding(t, {
    upgraded: socket => {
      containers.push(socket.resume())
    }
  })
  const [first] = await upgraded(t, forwarder, 1)
  const [second] = await upgraded(t, forwarder, 1)
  containers[0]?.resetAndDestroy()
  second?.resetAndDestroy()
  const ofSecond = containers[1]
  await until(
    () => ofSecond?.readableEnded === true || ofSecond?.destroyed === true,
    'the application is told'
  )
  first?.resume()
  await until(() => first?.readableEnded === true, 'the client is told')
})
