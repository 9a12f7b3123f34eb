import { randomUUID } from 'node:crypto'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { UpgradeStore } from '../upgrades/upgrade-store.js'

takeAwayFromEngine()

test('an upgrade goes on only from what it was found as', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const slug = `t-${randomUUID().slice(0, 8)}`
  const { body: project } = await ann.post('/api/projects', { name: slug, slug })
  const { body } = await ann.post(`/api/projects/${project.id}/databases`, { name: 'x', type: 'redis' })
  const upgrades = new UpgradeStore(k.database('databases'))
  const id = randomUUID()
  await k.query(
    `insert into databases.upgrade (id, database_id, phase, from_version, to_version, former_volume, started_at)
    values ('${id}', '${body.id}', 'running', '1', '2', 'x', now())`
  )
  const move = async (...[found, changes]: [object, object]) =>
    await k.transaction(
      async tx => await upgrades.move({ id, ...found } as Parameters<UpgradeStore['move']>[0], changes, tx)
    )
  const open = { phase: 'running', error: null }
  const givenUp = { phase: 'running', error: 'it failed' }
  t.equal(await move(open, givenUp), true)
  t.equal(await move(open, { phase: 'switched' }), false, 'what was given up is not switched')
  t.equal(await move(open, givenUp), false, 'and not given up once more by who knows nothing of it')
  t.equal(await move({ ...givenUp, error: 'other words' }, { phase: 'failed' }), true)
  t.equal(await move(givenUp, { phase: 'failed' }), false, 'it has ended')
  t.match((await upgrades.open(body.id)) ?? null, null)
})
