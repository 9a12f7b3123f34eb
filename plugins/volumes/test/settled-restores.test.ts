import { buffer } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { outcomeOf, putBack, sourceOf, sourceOptions, stored, work } from './source-lab.js'
import { volumeApplication } from './volume-lab.js'

async function opened(t: Test) {
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  await web.run('echo one > /data/file')
  const dump = await sourceOf().dump(id, { databases: [], quiesce: false }, work())
  const tar = await buffer(dump.content)
  await sourceOf().settle(id, 'backup', work())
  await web.run('echo two > /data/file')
  return { lab, web, id, tar }
}

test('a restore that was put back while nobody made backups says later how it has ended', async t => {
  if (!(await requireEngine(t))) return
  const { lab, web, id, tar } = await opened(t)

  const undone = work()
  await t.rejects(sourceOf().restore(id, stored(tar.subarray(0, tar.length - 1024)), undone))
  await putBack(sourceOf(), id)
  t.equal(await outcomeOf(sourceOf(), id, undone.id), 'undone', 'what was there before is there')
  t.equal(
    await outcomeOf(sourceOf(), id, undone.id),
    'undone',
    'it is asked again where a platform was killed behind the answer'
  )
  t.equal(await outcomeOf(sourceOf(), id, work().id), null, 'of another restore it says nothing')
  t.equal(await web.run('cat /data/file'), 'two')

  const exchanged = work()
  await sourceOf().restore(id, stored(tar), exchanged)
  // As a platform leaves it that is killed behind the exchange, and before it is noted.
  await lab.k.query('update volumes.backup_work set is_exchanging = true where volume_id = $1', [id])
  await lab.k.query('update volumes.volume set restore_id = $2 where id = $1', [id, exchanged.id])
  await putBack(sourceOf(), id)
  await until(async () => (await web.container()).State.Running, 'it runs')
  t.equal(await outcomeOf(sourceOf(), id, exchanged.id), 'restored')
  t.equal(await outcomeOf(sourceOf(), id, undone.id), null, 'the one before is over for long')
  t.equal(await web.run('cat /data/file'), 'one')
})

test('a restore that is put back for who makes backups may be begun again', async t => {
  if (!(await requireEngine(t))) return
  const { web, id, tar } = await opened(t)
  const cut = work()
  await t.rejects(sourceOf().restore(id, stored(tar.subarray(0, tar.length - 1024)), cut))
  t.equal(await outcomeOf(sourceOf(), id, cut.id), null)
  t.equal(await outcomeOf(sourceOf(), id, cut.id), null)
  t.equal(await web.run('cat /data/file'), 'two')
})

test('what a process held that was killed while it put back is put back by the next one', async t => {
  if (!(await requireEngine(t))) return
  const { lab, web, id, tar } = await opened(t)
  const cut = work()
  await t.rejects(sourceOf().restore(id, stored(tar.subarray(0, tar.length - 1024)), cut))
  await lab.k.query(
    "update volumes.backup_work set hold = gen_random_uuid(), held_until = now() + interval '3 seconds'"
  )
  const early = { ...cut, signal: AbortSignal.timeout(1000) }
  await t.rejects(sourceOf().settle(id, 'restore', early), 'while it may be at work still, nobody else is')
  await sourceOf().settle(id, 'restore', cut)
  t.equal(await web.run('cat /data/file'), 'two')
  t.same(await lab.k.query('select id from volumes.backup_work'), [])
})
