import { settingsFrom, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { decideHealth } from '../health/health-decision.js'
import { settings } from '../settings.js'
import { openLab, sample } from './deploy-lab.js'

test('three failures in a row make an application unhealthy, one success ends it, and nothing is said twice', t => {
  const well = { applicationStatus: 'running', healthStatus: 'passing', failures: 0 } as const
  t.same(decideHealth(well, true), { failures: 0 })
  t.same(decideHealth(well, false), { failures: 1 })
  t.same(decideHealth({ ...well, failures: 1 }, false), { failures: 2 })
  t.same(decideHealth({ ...well, failures: 2 }, false), {
    failures: 3,
    healthStatus: 'failing',
    tell: 'unhealthy'
  })
  const ill = { applicationStatus: 'unhealthy', healthStatus: 'failing', failures: 3 } as const
  t.same(decideHealth(ill, false), { failures: 4 })
  t.same(decideHealth(ill, true), { failures: 0, healthStatus: 'passing', tell: 'healthy' })
  t.same(
    decideHealth({ ...ill, applicationStatus: 'running', failures: 0 }, false),
    { failures: 1 },
    'it was restarted: it may try again'
  )
  t.same(decideHealth({ ...ill, applicationStatus: 'running', failures: 2 }, false), {
    failures: 3,
    tell: 'unhealthy'
  })
  t.end()
})

test('HEALTH_CHECK_INTERVAL_SECONDS is whole seconds, 30 unless given', t => {
  const read = (text?: string) =>
    settingsFrom(settings, { HEALTH_CHECK_INTERVAL_SECONDS: text }).health_check_interval_seconds
  t.equal(read(), 30)
  t.equal(read('5'), 5)
  for (const wrong of ['0', '-1', '1.5', 'soon'])
    t.throws(() => read(wrong), {
      message: `HEALTH_CHECK_INTERVAL_SECONDS is "${wrong}"; it takes a whole number from 1 to 9999`
    })
  t.end()
})

test('an application that runs is asked for its health again and again', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab({ environment: { HEALTH_CHECK_INTERVAL_SECONDS: '1' } })
  t.teardown(() => lab.close())
  const web = await lab.application('web', sample('v1'), { health_check_path: '/health' })
  t.equal((await web.deployed()).status, 'success')
  const { direct_url: address } = await web.read()
  const health = async () => (await (await lab.k.as.session()).get(`${web.path}/health`)).body
  t.match(await health(), { status: 'passing', message: 'GET /health answered 200' })

  await fetch(`${address}/break`)
  await until(async () => (await web.read()).status === 'unhealthy', 'the application is unhealthy', 60_000)
  t.match(await health(), {
    status: 'failing',
    message: /^GET \/health answered 500: no database, 3 times in a row/,
    checked_at: String
  })
  t.equal((await fetch(address)).status, 200, 'it still gets its requests')

  await lab.restart()
  t.equal((await web.read()).status, 'unhealthy', 'the engine, which knows of no check, does not overrule it')

  await fetch(`${address}/mend`)
  await until(async () => (await web.read()).status === 'running', 'the application is well again', 60_000)
  t.match(await health(), { status: 'passing', message: 'GET /health answered 200' })

  await fetch(`${address}/break`)
  await until(
    async () => (await web.read()).status === 'unhealthy',
    'the application is unhealthy again',
    60_000
  )
  await web.push(sample('v2'))
  t.equal((await web.deployed()).status, 'success')
  t.equal((await web.read()).status, 'running', 'a new version begins anew')
})
