import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab, sample } from './deploy-lab.js'

test('an old version that ignores SIGTERM does not hold up the next deploy', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const ignoring = await lab.application('ignores-sigterm', sample('ignores-sigterm', 'ignores-sigterm'))
  await ignoring.deployed()
  await ignoring.push(sample('two'))
  t.match(await ignoring.deployed(), { status: 'success' })
  await ignoring.push(sample('three'))
  const begunAt = Date.now()
  t.match(await ignoring.deployed(), { status: 'success' })
  t.ok(Date.now() - begunAt < 20_000)
  t.equal(await (await fetch((await ignoring.read()).direct_url)).text(), 'three')
  for (const { Id } of await ignoring.containers())
    await engine
      .getContainer(Id)
      .kill()
      .catch(() => {})
  await until(async () => (await ignoring.containers()).length <= 1, 'only one container is left')
})
