import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { BackupSource } from 'busbar/api/backups'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { pack } from 'tar-stream'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { sourceOf as sourceOfKind, sourceOptions, work } from '../../backups/test/source-keeper.js'
import { createDatabase, runIn, startLab, untilStatus } from './lab.js'

const sourceOf = (): BackupSource => sourceOfKind('database')

const withDevice = async (folder: string): Promise<Buffer> => {
  const tar = pack()
  tar.entry({ name: `${folder}/first` }, 'x')
  tar.entry({ name: `${folder}/disk`, type: 'block-device', devmajor: 8, devminor: 0 })
  tar.finalize()
  return await buffer(Readable.from(tar))
}

test('an archive of files is proven before anything of a database is touched', async t => {
  await startLab(t, sourceOptions)
  const source = sourceOf()
  const isBeside = (format: string, databases: readonly string[] = []) =>
    source.restoresBeside?.({ format, databases })
  // Nobody reads what is behind the end of an archive, so its end proves nothing.
  for (const format of ['volume-tar', 'command-tar']) t.equal(isBeside(format), false, format)
  t.equal(isBeside('postgres-sql'), true)
  t.equal(isBeside('postgres-sql', ['shop']), false)
})

test('an archive of files that is hostile or cut off is restored by nobody', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, sourceOptions)
  const { k, ann } = lab
  const body = { type: 'other', image: 'redis:7', container_port: 6379 }
  for (const [name, format, folder, more] of [
    ['files', 'volume-tar', 'volume', {}],
    [
      'commands',
      'command-tar',
      'busbar-backup',
      {
        backup_mode: 'command',
        backup_command: 'cp /data/kept "$BUSBAR_BACKUP_DIR/"',
        restore_command: 'cp "$BUSBAR_BACKUP_DIR/kept" /data/'
      }
    ]
  ] as const) {
    const made = await createDatabase(lab, { ...body, ...more, name })
    await runIn(k, made.id, ['sh', '-c', 'echo one > /data/kept'])
    const dump = await sourceOf().dump(made.id, { databases: [], quiesce: false }, work())
    t.equal(dump.format, format)
    const good = await buffer(dump.content)
    await dump.end()
    await sourceOf().settle(made.id, 'backup', work())
    await untilStatus(ann, made.path, 'running')
    await until(
      async () => (await runIn(k, made.id, ['cat', '/data/kept']).catch(() => '')) === 'one',
      'it to run again'
    )
    for (const [what, tar, says] of [
      ['a device', await withDevice(folder), /is a device/],
      ['another folder', await withDevice('etc'), /is not below/],
      // At the end of an entry an engine takes it for whole.
      ['cut off', good.subarray(0, 512), /ends before its end/]
    ] as const) {
      const stored = {
        format,
        databases: [],
        version: '',
        bytes: tar.length,
        content: Readable.from([Buffer.from(tar)])
      }
      await t.rejects(sourceOf().restore(made.id, stored, work()), says, `${name}: ${what}`)
      await sourceOf().settle(made.id, 'restore', work())
      await untilStatus(ann, made.path, 'running')
      t.equal(await runIn(k, made.id, ['cat', '/data/kept']), 'one', `${name}: ${what}`)
    }
  }
})
