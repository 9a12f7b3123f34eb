import { buffer } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { sourceOf, sourceOptions, stored, work } from './source-lab.js'
import { sparesOf, volumeApplication } from './volume-lab.js'

test('a volume is copied out as it is, and a copy takes the place of what is there', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  const source = sourceOf()
  t.match(await source.find(id, lab.projectId), { backupRefusal: /deploy the application first/ })
  t.equal(await source.find(id, web.id), undefined, 'in another project it is not there')
  await web.deployed()
  t.match(await source.find(id, lab.projectId), {
    name: 'data',
    slug: `${(await admin.get(web.path)).body.slug as string}-data`,
    engine: 'volume',
    application: { id: web.id, name: 'web' },
    mountPath: '/data',
    backupRefusal: null,
    restoreRefusal: null
  })
  const long = `${'deep-folder/'.repeat(20)}end`
  await web.run(
    `cd /data; echo one > 'with blank and ümlaut'; mkdir -p ${long}; echo deep > ${long}/file; ln -s ../../etc/hostname out; echo h > h1; ln h1 h2; echo s > s; chmod 4711 s; chmod 700 /data; head -c 3000000 /dev/urandom > large`
  )
  const sum =
    'cd /data; find . -exec stat -c "%n %a %u %g %h %F" {} + | sort; find . -type f -exec md5sum {} + | sort'
  const before = await web.run(sum)

  const dump = await source.dump(id, { databases: [], quiesce: false }, work())
  t.equal(dump.format, 'tar')
  const tar = await buffer(dump.content)
  t.match(await dump.end(), { rows: 5 })
  await source.settle(id, 'backup', work())
  t.equal((await web.container()).State.Running, true)

  await web.run('rm -rf /data/*; echo other > /data/other')
  const startedAt = (await web.container()).State.StartedAt
  let restored = 0
  const noting = {
    ...work(),
    restored: async () => {
      restored++
    }
  }
  await source.restore(id, stored(tar), noting)
  t.equal(restored, 1, 'what the application writes from then on is not replaced by the same restore')
  t.equal((await web.container()).State.Running, false, 'the application stands still until all is settled')
  t.match((await admin.get(web.path)).body, { status: 'stopped' })
  t.match(await admin.post(`${web.path}/start`), {
    status: 409,
    body: { error: /a restore of its volume data/ }
  })
  const { body: refused } = await admin.post(`${web.path}/deploy`)
  await until(
    async () => (await admin.get(`${web.path}/deployments/${refused.id}`)).body.status === 'failed',
    'a deploy is refused'
  )
  // As a platform leaves it that is killed behind the exchange, and before it is noted.
  await lab.k.query('update volumes.backup_work set is_exchanging = true where volume_id = $1', [id])
  await source.settle(id, 'restore', noting)
  t.equal(restored, 2)
  await source.settle(id, 'restore', noting)
  t.equal(restored, 2)
  await until(async () => (await admin.get(web.path)).body.status === 'running', 'it runs again')
  t.not((await web.container()).State.StartedAt, startedAt)
  t.equal(await web.run(sum), before)
  await until(async () => (await sparesOf(id)).length === 0, 'what was there before is gone', 60_000)
  t.equal((await web.deployed('reload')).status, 'success')
  t.equal(await web.run(sum), before, 'and a new container has it')

  t.match(
    await source.check(
      { id, projectId: lab.projectId, name: 'data', slug: 's', engine: 'volume', version: '' },
      stored(tar),
      work()
    ),
    {
      rows: 5
    }
  )
  t.same(await sparesOf(id), [], 'a drill leaves nothing behind')
})
