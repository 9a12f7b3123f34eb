import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { startLab, untilRunning } from './lab.js'
import { filledPostgres, heldDumps, leftOf, untilEnded } from './postgres-lab.js'

for (const [what, begin] of [
  ['upgraded', ['upgrade', { target_version: '15' }]],
  ['backed up', ['backups', {}]]
] as const)
  test(`of a database that is deleted while it is ${what} nothing stays`, async t => {
    if (!(await requireDatabaseImages(t))) return
    const lab = await startLab(t)
    const { k, ann } = lab
    const made = await filledPostgres(lab)
    const dumps = await heldDumps(t, lab, made)
    await ann.post(`${made.path}/${begin[0]}`, begin[1])
    await dumps.untilOneWaits()
    t.match(await ann.delete(made.path), { status: 200, body: { status: 'deleted' } })
    t.match(await ann.get(made.path), { status: 404 })
    await until(
      async () => {
        await k.runRemovalsNow()
        return (await k.query('select from databases.database')).length === 0
      },
      'the row to go',
      120_000
    )
    await dumps.release()
    const isIdle = async (): Promise<boolean> =>
      (await k.query("select from graphile_worker.jobs where task_identifier ~ '^(databases|backups):'"))
        .length === 0
    await until(isIdle, 'its jobs to end', 120_000)
    t.match(await leftOf(k, made), { containers: [], volumes: 0 })
  })

test('of a database that is deleted while it is restored nothing stays', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await filledPostgres(lab, '15')
  await ann.post(`${made.path}/backups`)
  const { id: backupId } = await untilEnded(ann, made.path, 'backups')
  await untilRunning(ann, made.path)
  await ann.post(`${made.path}/restore`, { backup_id: backupId })
  await until(async () => (await leftOf(k, made)).containers.length > 1, 'a server beside it')
  t.match(await ann.delete(made.path), { status: 200 })
  const isGone = async (): Promise<boolean> => {
    await k.runRemovalsNow()
    const { containers, volumes } = await leftOf(k, made)
    const rows = await k.query('select from databases.database')
    return rows.length === 0 && containers.length === 0 && volumes === 0
  }
  await until(isGone, 'all of it to go', 60_000)
  const restores = await k.query<{ status: string }>('select status from backups.restore')
  await until(async () => {
    const open = await k.query("select from backups.restore where status = 'running'")
    return open.length === 0
  }, 'the restore to end')
  t.equal(restores.length, 1)
  t.ok(await isGone(), 'and nothing comes back')
})
