import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { outcomeOf, putBack, sourceOf, sourceOptions, work } from '../../backups/test/source-keeper.js'
import { createDatabase, runIn, startLab, untilStatus } from './lab.js'

test('a restore that was put back while nobody made backups says later how it has ended', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, sourceOptions)
  const { k, ann } = lab
  const body = { type: 'other', image: 'redis:7', container_port: 6379, name: 'files' }
  const { id, path } = await createDatabase(lab, body)
  const source = sourceOf('database')
  const write = async (word: string) => await runIn(k, id, ['sh', '-c', `echo ${word} > /data/kept`])
  const kept = async () => await runIn(k, id, ['cat', '/data/kept'])
  await write('one')
  const dump = await source.dump(id, { databases: [], quiesce: false }, work())
  const tar = await buffer(dump.content)
  await dump.end()
  await source.settle(id, 'backup', work())
  await untilStatus(ann, path, 'running')
  await write('two')
  const stored = (bytes: Buffer) => ({
    format: dump.format,
    databases: [],
    version: '',
    bytes: bytes.length,
    content: Readable.from([bytes])
  })

  const begun = work()
  await t.rejects(source.restore(id, stored(tar.subarray(0, 512)), begun))
  t.equal(await outcomeOf(source, id, begun.id), null, 'one that is put back for who asks may begin again')
  await untilStatus(ann, path, 'running')

  const undone = work()
  await t.rejects(source.restore(id, stored(tar.subarray(0, 512)), undone))
  await putBack(source, id)
  await untilStatus(ann, path, 'running')
  t.equal(await outcomeOf(source, id, undone.id), 'undone', 'what was there before is there')
  t.equal(await outcomeOf(source, id, undone.id), 'undone', 'it is asked again where a platform was killed')
  t.equal(await outcomeOf(source, id, work().id), null, 'of another restore it says nothing')
  t.equal(await kept(), 'two')

  const cut = {
    ...work(),
    // As a platform is killed when what was restored serves, before that is known.
    restored: async () => {
      throw new Error('killed')
    }
  }
  await t.rejects(source.restore(id, stored(tar), cut), /killed/)
  await putBack(source, id)
  await untilStatus(ann, path, 'running')
  t.equal(await outcomeOf(source, id, cut.id), 'restored')
  t.equal(await kept(), 'one')
})
