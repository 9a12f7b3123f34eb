import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, startLab, untilRunning } from './lab.js'
import { untilEnded } from './postgres-lab.js'

test('the backups of a deleted database stay, unless they are to go with it', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { ann, k, projectId } = lab
  const made = []
  for (const name of ['kept', 'gone']) {
    const one = await createDatabase(lab, { name, type: 'redis', version: '7' })
    await ann.post(`${one.path}/backups`)
    const backup = await untilEnded(ann, one.path, 'backups')
    t.equal(backup.status, 'succeeded', backup.log)
    await untilRunning(ann, one.path)
    t.match((await ann.get(`${one.path}/deletion-impact`)).body, { backup_count: 1 })
    made.push({ ...one, backupId: backup.id as string })
  }
  const [kept, gone] = made
  if (kept === undefined || gone === undefined) throw new Error('two were made')
  t.match(await ann.delete(kept.path), { status: 200 })
  t.match(await ann.delete(`${gone.path}?delete_backups=true`), { status: 200 })
  await k.runRemovalsNow()
  const all = `/api/projects/${projectId}/orphaned-backups`
  await until(async () => (await ann.get(all)).body.length > 0, 'the backup that stays to be told')
  const ids = async (): Promise<string[]> =>
    (await k.query<{ id: string }>('select id from backups.backup order by id')).map(({ id }) => id)
  await until(async () => (await ids()).length === 1, 'the other one to be erased', 60_000)
  t.same(await ids(), [kept.backupId])
  t.match((await ann.get(all)).body, { length: 1, 0: { id: kept.backupId } })
})
