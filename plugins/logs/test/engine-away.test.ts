import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startEngineProxy } from '../../../lab/engine-proxy.js'
import { ended, isKeptWhole, openLab, outage, steady } from './logs-lab.js'

const deploymentId = '11111111-1111-4111-8111-111111111111'

test('an engine whose connections are cut, or that is away for a while, is read on when it is back', async t => {
  if (!(await requireEngine(t))) return
  const proxy = await startEngineProxy(t)
  const lab = await openLab(t, { environment: { DOCKER_HOST: proxy.address } })
  if (lab === undefined) return
  const application = await lab.application()
  const container = await application.run(steady(4000), deploymentId)
  const kept = async () => (await application.history('?limit=1'))[0]?.message ?? ''
  const count = async () => Number(/line (\d+)/.exec(await kept())?.[1] ?? 0)
  for (let round = 0; round < 3; round++) {
    const before = await count()
    await until(async () => (await count()) > before, 'further lines')
    if (round === 1) {
      proxy.down()
      await outage(1500)
      proxy.up()
    } else proxy.cut()
  }
  // One that is started while the event stream is away is found as well.
  proxy.cut()
  await isKeptWhole(t, lab, application, container, 4000)
  const second = await application.run('echo "line 0 y"; echo "line 1 y"')
  await ended(lab, second)
  await until(async () => (await kept()) === 'line 1 y', 'the lines of the next container')
})
