import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TrafficTarget } from 'busbar/api/deployments'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { ProgramLines } from '../../../lab/program-lines.js'
import { mayRetry } from '../../../sdk/http1/forwarding/route.js'
import { createSwitchMeter } from '../../../sdk/http1/forwarding/switch-meter.js'
import { openForwarder } from '../forwarder.js'
import { ask, type Origin, speak, startOrigin } from './origin.js'

const here = { host: '127.0.0.1', port: 0 }

/** A server that names itself, takes a little time for it, and echoes over WebSocket. */
async function version(name: string): Promise<Origin> {
  const origin = await startOrigin((incoming, response) => {
    incoming.resume()
    incoming.on('end', () => setTimeout(() => response.end(name), Math.random() * 8))
  })
  const sockets = new WebSocketServer({ server: origin.server })
  sockets.on('connection', socket => {
    socket.on('error', () => {})
    socket.on('message', message => socket.send(`${name}:${message.toString()}`))
  })
  return origin
}

test('twenty switches between two servers under load fail no request and no WebSocket upgrade', async t => {
  const versions = [await version('a'), await version('b')] as const
  const forwarder = await openForwarder(here, versions[0].target)
  const agent = new Agent({ keepAlive: true })
  t.teardown(async () => {
    agent.destroy()
    await forwarder.close()
    await Promise.all(versions.map(one => one.close()))
  })
  let isOver = false
  let answered = 0
  let upgraded = 0
  const failures: string[] = []

  const client = async (index: number): Promise<void> => {
    while (!isOver) {
      const isUpload = index % 3 === 0
      await ask(forwarder.port, {
        agent,
        method: isUpload ? 'POST' : 'GET',
        body: isUpload ? 'x'.repeat(5000) : undefined
      }).then(
        answer => {
          if (answer.status === 200 && 'ab'.includes(answer.body)) answered += 1
          else failures.push(`${answer.status} ${answer.body}`)
        },
        (error: Error) => failures.push(error.message)
      )
    }
  }
  const socketClient = async (): Promise<void> => {
    while (!isOver) {
      await new Promise<void>((resolve, reject) => {
        const socket = new WebSocket(`ws://127.0.0.1:${forwarder.port}/`)
        socket.on('open', () => socket.send('hi'))
        socket.on('message', message => {
          t.match(message.toString(), /^[ab]:hi$/)
          upgraded += 1
          socket.close()
        })
        socket.on('close', () => resolve())
        socket.on('error', reject)
      }).catch((error: Error) => failures.push(`ws ${error.message}`))
    }
  }
  const clients = [...Array.from({ length: 12 }, (_, index) => client(index)), socketClient(), socketClient()]
  let served = 0
  let longestGapMs = 0
  for (let round = 1; round <= 20; round += 1) {
    await sleep(60)
    const next = versions[round % 2 === 0 ? 0 : 1]
    const proof = await forwarder.switchTo(next.target).drain(2000)
    t.match(proof, { failed: 0, cut: 0 })
    longestGapMs = Math.max(longestGapMs, proof.longestGapMs)
    served += proof.served
    t.equal(
      (await ask(forwarder.port)).body,
      round % 2 === 0 ? 'a' : 'b',
      'a new request goes to the new version'
    )
  }
  isOver = true
  await Promise.all(clients)
  t.same(failures, [])
  t.comment(`longest gap ${longestGapMs} ms`)
  t.ok(answered > 200, `${answered} requests answered, ${served} of them while draining`)
  t.ok(upgraded > 5, `${upgraded} sockets`)
})

test('a request that was given to a container which is gone is given to the new one', async t => {
  const [frozen, next] = [await startFrozen(), await version('new')]
  const forwarder = await openForwarder(here, frozen.target, { connectTimeoutMs: 300, answerTimeoutMs: 5000 })
  t.teardown(async () => {
    await forwarder.close()
    frozen.close()
    await next.close()
  })
  const waiting = [ask(forwarder.port), ask(forwarder.port, { method: 'POST', body: 'kept' })]
  await sleep(50)
  const proof = await forwarder.switchTo(next.target).drain(3000)
  t.same(
    (await Promise.all(waiting)).map(answer => answer.body),
    ['new', 'new']
  )
  t.match(proof, { failed: 0, cut: 0 })
})

/** A process that is stopped and whose queue of connections is full: no new one is accepted. */
async function startFrozen(): Promise<{ target: TrafficTarget; close(): void }> {
  const listen =
    'require("net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, function () { console.log(this.address().port) })'
  const child = spawn(process.execPath, ['-e', listen], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = Number(await new ProgramLines(child.stdout, 'the server').next('its port'))
  child.kill('SIGSTOP')
  await sleep(50)
  const fillers = Array.from({ length: 6 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  await sleep(50)
  return {
    target: { deploymentId: 'd', containerId: 'c', host: '127.0.0.1', port },
    close() {
      for (const filler of fillers) filler.destroy()
      child.kill('SIGKILL')
    }
  }
}

test('a kept connection that the container closes under a request is no failure', async t => {
  let requests = 0
  const origin = await startOrigin((incoming, response) => {
    requests += 1
    // Closes the connection without a word when it is used a second time.
    if (requests === 2) return incoming.socket.destroy()
    response.end(String(requests))
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  t.equal((await ask(forwarder.port)).body, '1')
  t.equal((await ask(forwarder.port)).body, '3')
})

test('whether a request is sent again is decided by who can have begun on it, and three times are enough', t => {
  const unheard = {
    attempt: 1,
    method: 'POST',
    hasBody: true,
    wasConnected: false,
    wasReused: false,
    hasTimedOut: true,
    hasMoved: true
  }
  t.ok(mayRetry(unheard), 'nobody took the connection, and there is another container')
  t.ok(mayRetry({ ...unheard, attempt: 2 }))
  t.notOk(mayRetry({ ...unheard, attempt: 3 }))
  t.notOk(mayRetry({ ...unheard, hasMoved: false }), 'the same container would not take it either')
  const closed = {
    attempt: 1,
    method: 'GET',
    hasBody: false,
    wasConnected: true,
    wasReused: true,
    hasTimedOut: false,
    hasMoved: true
  }
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
    t.ok(mayRetry({ ...closed, method, hasMoved: false }), method)
  for (const method of ['POST', 'PATCH', 'LOCK', 'get']) t.notOk(mayRetry({ ...closed, method }), method)
  for (const change of [{ attempt: 3 }, { hasBody: true }, { wasReused: false }, { hasTimedOut: true }])
    t.notOk(mayRetry({ ...closed, ...change }), JSON.stringify(change))
  t.end()
})

test('requests under way finish on the old version, and the proof says how long that took', async t => {
  let isAsked = false
  const slow = await startOrigin((_, response) => {
    isAsked = true
    setTimeout(() => response.end('slow'), 1500)
  })
  const next = await version('new')
  const forwarder = await openForwarder(here, slow.target)
  t.teardown(async () => {
    await forwarder.close()
    await Promise.all([slow.close(), next.close()])
  })
  const underWay = ask(forwarder.port)
  await until(() => isAsked, 'the request is under way')
  const switched = forwarder.switchTo(next.target)
  t.equal((await ask(forwarder.port)).body, 'new')
  const proof = await switched.drain(5000)
  t.equal((await underWay).body, 'slow')
  t.match(proof, { served: 2, failed: 0, cut: 0 })
  t.ok(proof.drainMs >= 200 && proof.drainMs < 5000, `${proof.drainMs} ms`)
})

test('a drain has lasted until nothing was under way, however late it is asked for', async t => {
  const [old, next] = [await version('old'), await version('new')]
  const forwarder = await openForwarder(here, old.target)
  t.teardown(() => Promise.all([forwarder.close(), old.close(), next.close()]))
  const before = performance.now()
  const switched = forwarder.switchTo(next.target)
  const tookMs = performance.now() - before
  await until(() => performance.now() - before > 2 * tookMs + 50, 'time has passed')
  const { drainMs } = await switched.drain(1000)
  t.ok(drainMs <= Math.ceil(tookMs), `${drainMs} ms of ${tookMs} ms`)
})

test("a request that fails by its client's own fault is no failure of a switch", async t => {
  const [one, two] = [await startOrigin(() => {}), await startOrigin(() => {})]
  const forwarder = await openForwarder(here, one.target, { answerTimeoutMs: 200, lingerMs: 200 })
  t.teardown(() => Promise.all([forwarder.close(), one.close(), two.close()]))
  const reached = once(one.server, 'request')
  const stalled = speak(forwarder.port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1')
  await reached
  const proof = await forwarder.switchTo(two.target).drain(5000)
  t.match((await stalled).said, /^HTTP\/1\.1 408 /)
  t.match(proof, { served: 0, failed: 0, cut: 0 })
})

test('what is still open when the time is up is counted and left to the container', async t => {
  const [old, next] = [await version('old'), await version('new')]
  const forwarder = await openForwarder(here, old.target)
  t.teardown(async () => {
    await forwarder.close()
    await Promise.all([old.close(), next.close()])
  })
  const socket = new WebSocket(`ws://127.0.0.1:${forwarder.port}/`)
  await new Promise(resolve => socket.once('open', resolve))
  const proof = await forwarder.switchTo(next.target).drain(100)
  t.match(proof, { cut: 1, failed: 0 })
  const echoed = new Promise(resolve => socket.once('message', message => resolve(message.toString())))
  socket.send('still')
  t.equal(await echoed, 'old:still')
  const closed = new Promise(resolve => socket.once('close', resolve))
  await old.close()
  await closed
})

test("an upgrade that the container refuses is answered with the container's words", async t => {
  const origin = await startOrigin((_, response) => {
    response.writeHead(403, { 'X-Why': 'no' })
    response.end('no sockets here')
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const answer = await ask(forwarder.port, { headers: { Connection: 'Upgrade', Upgrade: 'websocket' } })
  t.match(answer, { status: 403, body: 'no sockets here', headers: { 'x-why': 'no' } })
  forwarder.retarget(null)
  t.match(await ask(forwarder.port, { headers: { Connection: 'Upgrade', Upgrade: 'websocket' } }), {
    status: 503,
    body: /not running/
  })
})

test('an upgrade that a container has got is given to nobody again', async t => {
  const [old, next] = [await version('old'), await version('new')]
  const forwarder = await openForwarder(here, old.target)
  t.teardown(() => Promise.all([forwarder.close(), old.close(), next.close()]))
  let upgrades = 0
  for (const { server } of [old, next]) {
    server.removeAllListeners('upgrade')
    server.on('upgrade', (_, socket) => {
      upgrades += 1
      forwarder.retarget(next.target)
      socket.destroy()
    })
  }
  const answer = await ask(forwarder.port, { headers: { Connection: 'Upgrade', Upgrade: 'websocket' } })
  t.equal(answer.status, 502)
  t.equal(upgrades, 1)
})

test('closing ends open sockets and frees the port', async t => {
  const origin = await version('a')
  t.teardown(() => origin.close())
  const forwarder = await openForwarder(here, origin.target)
  const socket = new WebSocket(`ws://127.0.0.1:${forwarder.port}/`)
  await new Promise(resolve => socket.once('open', resolve))
  const closed = new Promise(resolve => socket.once('close', resolve))
  await forwarder.close()
  await closed
  const again = await openForwarder({ host: '127.0.0.1', port: forwarder.port }, origin.target)
  t.equal(again.port, forwarder.port)
  await again.close()
})

test('a failure counts only while it is watched, and a gap only while somebody waits', async t => {
  let now = 0
  const meter = createSwitchMeter(() => now)
  meter.began()
  now = 50
  const watched = meter.watch()
  now = 80
  meter.answered()
  now = 1000
  meter.began()
  now = 1020
  meter.failed()
  meter.began()
  meter.abandoned()
  t.same(watched.end(), { served: 1, failed: 1, longestGapMs: 30 })
  meter.began()
  meter.failed()
  t.same(meter.watch().end(), { served: 0, failed: 0, longestGapMs: 0 })
})

test('a connection that sends no request keeps nobody from closing', async t => {
  const forwarder = await openForwarder(here, null)
  const socket = connect(forwarder.port, '127.0.0.1')
  await new Promise(resolve => socket.once('connect', resolve))
  socket.resume()
  const closed = new Promise(resolve => socket.once('close', resolve))
  await forwarder.close()
  await closed
  t.pass()
})
