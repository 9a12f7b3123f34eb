import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { pack } from 'tar-stream'
import { requireEngine } from '../../../lab/engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { sourceOf, sourceOptions, stored, work } from './source-lab.js'
import { sparesOf, volumeApplication } from './volume-lab.js'

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
  await until(async () => (await sparesOf(id)).length === 0, 'nothing is left behind', 60_000)
})
