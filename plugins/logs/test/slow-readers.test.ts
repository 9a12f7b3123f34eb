import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { burst, ended, jumps, type LabApplication, openLab } from './logs-lab.js'

const deploymentId = '11111111-1111-4111-8111-111111111111'
const mebibyte = 2 ** 20

/** A client that asks for the stream, and reads so many bytes a second of it. */
async function slowStream(application: LabApplication, bytesASecond: number): Promise<Socket> {
  const { port } = new URL(application.lab.client.url)
  const socket = connect({ host: '127.0.0.1', port: Number(port) })
  socket.on('error', () => {})
  await once(socket, 'connect')
  const credential = Object.entries(application.lab.client.credential).map(
    ([name, value]) => `${name}: ${value}`
  )
  socket.write(
    `${[`GET ${application.path}/logs?follow=true HTTP/1.1`, 'Host: localhost', ...credential].join('\r\n')}\r\n\r\n`
  )
  socket.pause()
  if (bytesASecond > 0) {
    const reading = setInterval(() => socket.read(bytesASecond), 1000)
    socket.on('close', () => {
      clearInterval(reading)
    })
  }
  return socket
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** In use, without garbage. */
const held = (): number => {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

test('readers that read nothing, or a byte a second, cost little memory and others no line', async t => {
  const lab = await openLab(t)
  if (lab === undefined) return
  const application = await lab.application()
  await application.serves(deploymentId)
  const quick = await application.stream('?follow=true')
  await until(() => quick.comments.length > 0, 'the stream')
  let received = 0
  let sample: string[] = []
  // What the quick reader has read is not kept, as it would be most of the memory.
  const drain = setInterval(() => {
    received += quick.events.length
    sample = quick.events.splice(0).map(({ data }) => data)
    const found = jumps(sample).filter((_, at) => at > 0)
    if (found.length > 0) t.fail(`the quick reader: ${found.join()}`)
  }, 50)
  lab.k.resetRateLimits()
  const slow: Socket[] = []
  for (let n = 0; n < 10; n++) slow.push(await slowStream(application, n % 2))
  const sockets: WebSocket[] = []
  for (let n = 0; n < 5; n++) {
    const socket = new WebSocket(`${lab.client.url.replace('http', 'ws')}/api/ws`, {
      headers: lab.client.credential
    })
    await once(socket, 'open')
    socket.send(JSON.stringify({ action: 'subscribe', channel: `container-logs:${application.id}` }))
    socket.pause()
    socket.on('error', () => {})
    sockets.push(socket)
  }
  const before = held()
  let most = 0
  const stop = () => {
    clearInterval(measuring)
    clearInterval(asking)
    clearInterval(drain)
  }
  t.teardown(stop)
  const measuring = setInterval(() => {
    most = Math.max(most, held() - before)
  }, 3000)
  let slowestMs = 0
  const asking = setInterval(() => {
    const askedAt = performance.now()
    lab.k.resetRateLimits()
    void lab.client.get('/api/version').then(() => {
      slowestMs = Math.max(slowestMs, performance.now() - askedAt)
    })
  }, 100)
  const container = await application.run(`sleep 1; ${burst(100_000, 150)}`, deploymentId)
  await ended(lab, container)
  await until(() => received >= 100_000, 'all lines at the quick reader', 120_000)
  stop()
  t.equal(received, 100_000)
  t.comment(
    `${(most / mebibyte).toFixed(0)} MiB more at most; the slowest answer took ${slowestMs.toFixed(0)} ms`
  )
  t.ok(most < 48 * mebibyte, `${(most / mebibyte).toFixed(0)} MiB`)
  // The streams wait for their readers; of the sockets the bus gets rid.
  t.ok(slow.every(socket => !socket.destroyed))
  for (const socket of slow) socket.destroy()
  for (const socket of sockets) socket.terminate()
  quick.close()
})
