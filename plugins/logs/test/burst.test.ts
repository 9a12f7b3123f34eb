import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
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
