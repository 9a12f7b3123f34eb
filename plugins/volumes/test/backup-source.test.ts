import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { pack } from 'tar-stream'
import { requireEngine } from '../../../lab/engine.js'
import { engine, openLab } from '../../deployments/test/deploy-lab.js'
import { sourceOf, sourceOptions, stored, work } from './source-lab.js'
import { volumeApplication } from './volume-lab.js'

const spares = async (): Promise<string[]> => {
  const { Volumes: all } = await engine.listVolumes()
  return (all ?? []).map(({ Name }) => Name).filter(name => /^busbar-(?:spare|drill)-/.test(name))
}

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
  await until(async () => (await spares()).length === 0, 'what was there before is gone', 60_000)
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
  t.same(await spares(), [], 'a drill leaves nothing behind')
})

test('with quiesce the application stands still while its volume is copied', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  const source = sourceOf()
  const dump = await source.dump(id, { databases: [], quiesce: true }, work())
  t.equal((await web.container()).State.Running, false)
  t.match(await admin.post(`${web.path}/restart`), {
    status: 409,
    body: { error: /a backup of its volume data/ }
  })
  await buffer(dump.content)
  t.match(await dump.end(), { rows: 0 })
  // The platform may have been started anew in between.
  await lab.restart()
  await sourceOf().settle(id, 'backup', work())
  await until(
    async () => (await (await lab.k.as.session()).get(web.path)).body.status === 'running',
    'it runs'
  )
  t.equal((await web.container()).State.Running, true)
  t.equal((await (await lab.k.as.session()).post(`${web.path}/stop`)).status, 200)
  const quiet = await sourceOf().dump(id, { databases: [], quiesce: true }, work())
  await buffer(quiet.content)
  await sourceOf().settle(id, 'backup', work())
  t.equal((await web.container()).State.Running, false, 'one that somebody has stopped stays so')
})

test('two volumes of an application stand still together until both are copied', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const web = await volumeApplication(lab, 'web')
  const { id: first } = await web.addVolume('first', '/first')
  const { id: second } = await web.addVolume('second', '/second')
  await web.deployed()
  const source = sourceOf()
  const isRunning = async (): Promise<boolean> => (await web.container()).State.Running
  const begin = async (id: string) =>
    await buffer((await source.dump(id, { databases: [], quiesce: true }, work())).content)
  await begin(first)
  await begin(second)
  await source.settle(first, 'backup', work())
  t.equal(await isRunning(), false, 'the other one is being copied still')
  await source.settle(second, 'backup', work())
  t.equal(await isRunning(), true)

  await Promise.all([begin(first), begin(second)])
  t.equal(await isRunning(), false)
  await Promise.all([source.settle(first, 'backup', work()), source.settle(second, 'backup', work())])
  t.equal(await isRunning(), true, 'when both end at once, one of them starts it')
})

test('what an earlier backup could not start again is started before another one begins', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  const dump = async () =>
    await buffer((await sourceOf().dump(id, { databases: [], quiesce: true }, work())).content)
  await dump()
  // Nobody has settled it.
  await dump()
  t.equal((await web.container()).State.Running, false, 'it stands still for this one too')
  await sourceOf().settle(id, 'backup', work())
  t.equal((await web.container()).State.Running, true)
})

test('archives that are hostile, cut off or none leave everything as it was', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  await web.run('echo kept > /data/file')
  const source = sourceOf()
  const dump = await source.dump(id, { databases: [], quiesce: false }, work())
  const good = await buffer(dump.content)
  const hostile = async (name: string, more = {}): Promise<Buffer> => {
    const tar = pack()
    tar.entry({ name: 'volume/first' }, 'x')
    tar.entry({ name, ...more }, 'escaped')
    tar.finalize()
    return await buffer(Readable.from(tar))
  }
  const link = pack()
  link.entry({ name: 'volume/etc', type: 'symlink', linkname: '/etc' })
  link.entry({ name: 'volume/etc/passwd' }, 'escaped')
  link.finalize()
  for (const [what, tar] of [
    ['above', await hostile('volume/../../escaped')],
    ['absolute', await hostile('/escaped')],
    ['cut off', good.subarray(0, good.length - 1024)],
    ['none', Buffer.from('no tar at all'.repeat(100))],
    ['nothing', Buffer.alloc(0)]
  ] as const) {
    await t.rejects(source.restore(id, stored(tar), work()), what)
    await source.settle(id, 'restore', work())
    t.equal(await web.run('cat /data/file; ls /data'), 'kept\nfile', what)
    t.equal((await web.container()).State.Running, true, `${what}: it was never stopped`)
  }
  const aborted = new AbortController()
  const endless = Readable.from(
    (async function* () {
      yield good.subarray(0, 1024)
      aborted.abort(new Error('time is up'))
      await new Promise(() => {})
    })()
  )
  await t.rejects(
    source.restore(id, { ...stored(good), content: endless }, { ...work(), signal: aborted.signal }),
    /time is up/
  )
  await source.settle(id, 'restore', work())
  t.equal(await web.run('cat /data/file'), 'kept')
  await source.restore(id, stored(await buffer(Readable.from(link))), work()).catch(() => {})
  await source.settle(id, 'restore', work())
  await until(async () => (await web.container()).State.Running, 'it runs')
  t.notMatch(await web.run('cat /etc/passwd'), 'escaped', 'a link in an archive leads nowhere')
  await until(async () => (await spares()).length === 0, 'nothing is left behind', 60_000)
})
