import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { backupOf } from './backup-lab.js'
import { createDatabase, startLab } from './lab.js'

test('a backup of a database that is not there fails, and does not count as an empty one', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const made = await createDatabase(lab, { type: 'postgres', version: '15' })
  t.match(await backupOf(lab, made, ['shop', 'nope']), {
    status: 'failed',
    error: 'there is no database nope in it'
  })
  t.match(await backupOf(lab, made, ['shop\npostgres']), { status: 'failed' })
  t.match(await backupOf(lab, made, ['shop']), { status: 'succeeded', target_database: 'shop' })
})
