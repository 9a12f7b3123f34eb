import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startEngineProxy } from '../../../lab/engine-proxy.js'
import { openLab } from './logs-lab.js'

const ticks = 'n=0; while true; do echo "tick $n"; n=$((n + 1)); sleep 0.2; done'

test('the engine is asked once for what a container writes, however many keep it and watch it', async t => {
  if (!(await requireEngine(t))) return
  const proxy = await startEngineProxy(t)
  const lab = await openLab(t, { environment: { DOCKER_HOST: proxy.address } })
  if (lab === undefined) return
  const application = await lab.application()
  const deploymentId = '11111111-1111-4111-8111-111111111111'
  const containers = [await application.run(ticks), await application.run(ticks, deploymentId)]
  await application.serves(deploymentId)
  const channel = `container-logs:${application.id}`
  const sockets = await Promise.all([1, 2, 3].map(async () => await lab.k.socket(lab.client)))
  for (const socket of sockets) socket.subscribe(channel)
  const streams = await Promise.all([1, 2, 3].map(async () => await application.stream('?follow=true')))
  await until(async () => (await application.history('?limit=100')).length >= 20, 'lines that are kept')
  for (const socket of sockets)
    await until(
      () => socket.frames.filter(frame => frame.channel === channel).length >= 10,
      'lines of a socket'
    )
  for (const stream of streams) await until(() => stream.events.length >= 10, 'lines of a stream')
  for (const id of containers)
    t.equal(
      proxy.requests.filter(request => request.includes(`/containers/${id}/logs`)).length,
      1,
      proxy.requests.filter(request => request.includes('/logs')).join('\n')
    )
})
