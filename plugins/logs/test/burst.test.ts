import { createTestKernel, TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { readEvents } from './event-reader.js'
import { burst, jumps, openLab } from './logs-lab.js'

test('a burst of 100 000 lines arrives whole and in order in the history, the stream and the channel', async t => {
  const lab = await openLab(t)
  if (lab === undefined) return
  const application = await lab.application()
  const deploymentId = '11111111-1111-4111-8111-111111111111'
  await application.serves(deploymentId)
  const socket = await lab.k.socket(lab.client)
  socket.subscribe(`container-logs:${application.id}`)
  const stream = await application.stream('?follow=true')
  await application.run(`sleep 1; ${burst(100_000)}`, deploymentId)
  await until(() => stream.events.length >= 100_000, 'the stream', 120_000)
  t.same(jumps(stream.events.map(({ data }) => data)), [])
  t.equal(stream.events.length, 100_000)
  const whole = await application.whole()
  t.equal(whole.length, 100_000)
  t.same(jumps(whole.map(({ message = '' }) => message)), [])
  t.same(
    whole.slice(0, 100).map(({ id }) => id),
    stream.events.slice(0, 100).map(({ id }) => id)
  )
  const heard = socket.frames.map(({ data }) => data.message as string)
  t.comment(`${heard.length} heard`)
  t.same(jumps(heard), [])
  t.equal(heard.length, 100_000)
  stream.close()
  await socket.close()
})

test('a burst of 100 000 lines arrives whole and in order at another process', async t => {
  const lab = await openLab(t)
  if (lab === undefined) return
  const { k, client } = lab
  const other = await createTestKernel({ state: k.state, environment: { BUSBAR_ROLE: 'api' } })
  t.teardown(() => other.stop())
  const application = await lab.application()
  const deploymentId = '11111111-1111-4111-8111-111111111111'
  await application.serves(deploymentId)
  const there = new TestClient(other.url, client.credential, client.userId)
  const socket = await other.socket(there)
  const stream = readEvents(await there.open(`${application.path}/logs?follow=true`))
  socket.subscribe(`container-logs:${application.id}`)
  await application.run(`sleep 3; ${burst(100_000)}`, deploymentId)
  await until(() => socket.frames.length >= 100_000, 'the lines', 120_000).catch(() => {})
  const heard = socket.frames.map(({ data }) => data.message as string)
  t.same(jumps(heard).slice(0, 5), [])
  t.equal(heard.length, 100_000)
  await until(() => stream.events.length >= 100_000, 'the stream', 120_000)
  t.same(jumps(stream.events.map(({ data }) => data)), [])
  t.equal(stream.events.length, 100_000)
  const answer = await there.get(`${application.path}/logs/history?limit=1000`)
  const last: Array<{ message: string }> = answer.body
  t.equal(last[0]?.message.split(' ')[1], '99999', 'the history has them there too')
  t.equal(last.length, 1_000)
  stream.close()
  await socket.close()
})
