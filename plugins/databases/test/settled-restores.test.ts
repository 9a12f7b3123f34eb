import { execFile } from 'node:child_process'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import type { BackupSource, StoredDump } from 'busbar/api/backups'
import { containerRuntime } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { outcomeOf, putBack, sourceOf, sourceOptions, work } from '../../backups/test/source-keeper.js'
import { createDatabase, runIn, startLab, untilStatus } from './lab.js'
import { leftOf } from './postgres-lab.js'

const filesBody = { type: 'other', image: 'redis:7', container_port: 6379, name: 'files' }

/** A backup of it, or the first bytes of one. */
async function dumpOf(source: BackupSource, id: string): Promise<(bytes?: number) => StoredDump> {
  const dump = await source.dump(id, { databases: [], quiesce: false }, work())
  const whole = await buffer(dump.content)
  await dump.end()
  await source.settle(id, 'backup', work())
  return bytes => {
    const content = whole.subarray(0, bytes)
    const { format } = dump
    return { format, databases: [], version: '', bytes: content.length, content: Readable.from([content]) }
  }
}

/** With these its server ends, each time that it starts. */
async function unreadableFiles(t: Test): Promise<StoredDump> {
  const folder = t.testdir({ volume: { 'dump.rdb': 'none' } })
  const { stdout } = await promisify(execFile)('tar', ['-c', '-C', folder, 'volume'], {
    encoding: 'buffer'
  })
  const content = Readable.from([stdout])
  return { format: 'volume-tar', databases: [], version: '', bytes: stdout.length, content }
}

test('a restore that was put back while nobody made backups says later how it has ended', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, sourceOptions)
  const { k, ann } = lab
  const { id, path } = await createDatabase(lab, filesBody)
  const source = sourceOf('database')
  const write = async (word: string) => await runIn(k, id, ['sh', '-c', `echo ${word} > /data/kept`])
  const kept = async () => await runIn(k, id, ['cat', '/data/kept'])
  await write('one')
  const stored = await dumpOf(source, id)
  await untilStatus(ann, path, 'running')
  await write('two')

  const begun = work()
  await t.rejects(source.restore(id, stored(512), begun))
  t.equal(await outcomeOf(source, id, begun.id), null, 'one that is put back for who asks may begin again')
  await untilStatus(ann, path, 'running')

  const undone = work()
  await t.rejects(source.restore(id, stored(512), undone))
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
  await t.rejects(source.restore(id, stored(), cut), /killed/)
  await putBack(source, id)
  await untilStatus(ann, path, 'running')
  t.equal(await outcomeOf(source, id, cut.id), 'restored')
  t.equal(await kept(), 'one')
})

test('two that put back one restore at once do not undo what the other has made', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, sourceOptions)
  const { k, ann } = lab
  const { id, path, slug } = await createDatabase(lab, filesBody)
  const source = sourceOf('database')
  await runIn(k, id, ['sh', '-c', 'echo one > /data/kept'])
  const stored = await dumpOf(source, id)
  await untilStatus(ann, path, 'running')
  await runIn(k, id, ['sh', '-c', 'echo two > /data/kept'])
  const cut = {
    ...work(),
    restored: async () => {
      throw new Error('killed')
    }
  }
  await t.rejects(source.restore(id, stored(), cut), /killed/)
  // As where it was killed before its container was made.
  const runtime = k.service(containerRuntime)
  for (const { id: container } of await runtime.list({ databaseId: id })) await runtime.remove(container)
  await k.query('update databases.database set container_id = null')
  const outcomes: string[] = []
  const settle = async () => {
    await source.settle(id, 'restore', {
      ...cut,
      restored: async () => {
        outcomes.push('restored')
      },
      undone: () => {
        outcomes.push('undone')
      }
    })
  }
  await Promise.all([putBack(source, id), settle()])
  await untilStatus(ann, path, 'running')
  t.equal(await runIn(k, id, ['cat', '/data/kept']), 'one')
  t.same(outcomes, ['restored'])
  t.match(await leftOf(k, { id }), { containers: [slug], volumes: 1 })
})

test('what a process held that was killed while it put back is put back by the next one', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, sourceOptions)
  const { k, ann } = lab
  const { id, path } = await createDatabase(lab, filesBody)
  const source = sourceOf('database')
  const stored = await dumpOf(source, id)
  await untilStatus(ann, path, 'running')
  const broken = work()
  await t.rejects(source.restore(id, { ...stored(), content: Readable.from([Buffer.from('none')]) }, broken))
  await k.query(
    "update databases.database set hold = gen_random_uuid(), held_until = now() + interval '3 seconds'"
  )
  const early = { ...broken, signal: AbortSignal.timeout(1000) }
  await t.rejects(source.settle(id, 'restore', early), 'while it may be at work still, nobody else is')
  await source.settle(id, 'restore', broken)
  t.match((await ann.get(path)).body, { status: 'running' })
})

test('the volume of a restored server that may have served when it was cut off is kept, and is named', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, sourceOptions)
  const { k, ann } = lab
  const { id, path } = await createDatabase(lab, filesBody)
  const source = sourceOf('database')
  const names = async () => await k.service(containerRuntime).volumeNames({ databaseId: id })
  const [former] = await names()
  const stop = new AbortController()
  const restore = { ...work(), signal: stop.signal }
  const restored = source.restore(id, await unreadableFiles(t), restore)
  const isStarted = async () =>
    (
      await k.query(
        'select id from databases.database where former_volume is not null and container_id is not null'
      )
    ).length > 0
  await until(isStarted, 'its server to be started')
  stop.abort(new Error('killed'))
  await t.rejects(restored, /killed/)
  let told: string | undefined
  await source.settle(id, 'restore', {
    ...work(),
    id: restore.id,
    undone: reason => {
      told = reason
    }
  })
  const { body } = await ann.get(path)
  t.match(body, { status: 'running', status_detail: /its server ends/ })
  const kept = /may have taken meanwhile is in the volume (\S+), which is kept until \d/.exec(
    body.status_detail
  )?.[1]
  t.ok(kept, body.status_detail)
  t.equal(told, body.status_detail, 'it is over, and whoever looks for these rows is told')
  t.same([...(await names())].sort(), [former, kept].sort())
  t.same(await k.query('select volume, former_volume, next_volume, task from databases.database'), [
    { volume: former, former_volume: null, next_volume: null, task: null }
  ])
})
