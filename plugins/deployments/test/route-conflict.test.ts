import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import tap, { test } from 'tap'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { openLab, sample } from './deploy-lab.js'

const execute = promisify(execFile)
const table = '7323'

tap.setTimeout(180_000)

test("a route that has come to cover the project's network is what a failed health check names", async t => {
  // It takes root to set one.
  if (!(await requireSecondEngine(t))) return
  const lab = await openLab({ environment: { BUSBAR_SUBNETS: '10.216.0.0/24' } })
  t.teardown(async () => {
    await lab.close()
  })
  const web = await lab.application('web', sample('one'), { health_check_path: '/health' })
  const admin = await lab.k.as.session()
  t.equal(
    (await admin.put(`${web.path}/health-check`, { type: 'http', path: '/health', timeout_seconds: 5 }))
      .status,
    200
  )
  t.match(await web.deployed(), { status: 'success' })

  await execute('ip', ['route', 'add', '10.216.0.0/16', 'dev', 'docker0', 'table', table])
  t.teardown(async () => {
    await execute('ip', ['route', 'delete', '10.216.0.0/16', 'dev', 'docker0', 'table', table])
  })
  await execute('ip', ['rule', 'add', 'to', '10.216.0.0/16', 'lookup', table])
  const mend = async (): Promise<void> => {
    await execute('ip', ['rule', 'delete', 'to', '10.216.0.0/16', 'lookup', table])
  }
  t.teardown(async () => {
    await mend().catch(() => undefined)
  })
  const words =
    /the platform cannot reach it, because this machine sends what is for 10\.216\.0\.\d+ from its address [\d.]+ and not into the network busbar-lab-.*BUSBAR_SUBNETS/
  t.match(await web.deployed(), { status: 'failed', error_message: words })
  t.equal((await admin.put(`${web.path}/health-check`, { type: 'none' })).status, 200)
  t.match(
    await web.deployed(),
    { status: 'failed', error_message: words },
    'and so without a check, where the port must answer'
  )

  await mend()
  t.match(await web.deployed(), { status: 'success' })
})
