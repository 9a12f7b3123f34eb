import type { Clock } from 'busbar/sdk'
import { test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { requireEngine } from '../../../lab/engine.js'
import { openLab, sample } from './deploy-lab.js'

test('a deploy that takes longer than it may is ended, and says which setting', async t => {
  if (!(await requireEngine(t))) return
  const clock = systemClock()
  const hurried: Clock = {
    ...clock,
    sleep: async (ms, signal) => await clock.sleep(ms === 45 * 60_000 ? 5000 : ms, signal)
  }
  const lab = await openLab({ clock: hurried })
  t.teardown(async () => await lab.close())
  const web = await lab.application('web', sample('mute', 'silent'))
  const { status } = await (await lab.k.as.session()).put(`${web.path}/health-check`, {
    type: 'http',
    path: '/',
    timeout_seconds: 3600
  })
  t.equal(status, 200)
  t.match(await web.deployed(), {
    status: 'failed',
    error_message: /^the deploy took longer than 45 minutes/,
    remedy: /raise TASK_TIMEOUT_MINUTES/
  })
  t.same(await web.containers(), [], 'nothing is left of it')
})
