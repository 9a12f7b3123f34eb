import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { startLab, untilRunning } from './lab.js'
import {
  filledPostgres,
  heldDumps,
  killServer,
  leftOf,
  startWriter,
  untilEnded,
  untilUpgraded
} from './postgres-lab.js'

test('rows that are acknowledged while a database is upgraded are all in the new version', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const made = await filledPostgres(lab)
  const writer = startWriter(t, lab, made)
  await writer.untilMore()
  await lab.ann.post(`${made.path}/upgrade`, { target_version: '15' })
  t.match(await untilUpgraded(lab.ann, made), { phase: 'succeeded' })
  await writer.untilMore()
  t.same(await writer.lost(), [])
  t.match(await leftOf(lab.k, made), { containers: [made.slug], volumes: 2 })
})

test('a server that is killed while it is dumped', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await filledPostgres(lab)
  const writer = startWriter(t, lab, made)
  await writer.untilMore()

  await t.test('for an upgrade goes on as it was', async t => {
    const dumps = await heldDumps(t, lab, made)
    await ann.post(`${made.path}/upgrade`, { target_version: '15' })
    await dumps.untilOneWaits()
    await killServer(k, made)
    const upgrade = await untilUpgraded(ann, made)
    t.match(upgrade, { phase: 'failed', error: /^the dump failed/ }, upgrade.log)
    await dumps.release()
    await untilRunning(ann, made.path)
    t.match((await ann.get(made.path)).body, { version: '14', status: 'running' })
    await writer.untilMore()
  })

  await t.test('for a backup goes on as it was, and the backup has failed', async t => {
    const dumps = await heldDumps(t, lab, made)
    t.match(await ann.post(`${made.path}/backups`), { status: 202 })
    await dumps.untilOneWaits()
    await killServer(k, made)
    const backup = await untilEnded(ann, made.path, 'backups')
    t.match(backup, { status: 'failed', error: /^the dump failed/ }, backup.log)
    await dumps.release()
    await untilRunning(ann, made.path)
    await writer.untilMore()
  })

  t.same(await writer.lost(), [])
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
})

test('while one thing is done with a database nothing else is begun', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await filledPostgres(lab, '15')
  const { path } = made
  const others = async (except: string) => {
    const asked: Array<[string, object?]> = [
      ['upgrade', { target_version: '15' }],
      ['reload'],
      ['stop'],
      ['start'],
      ['restart'],
      ['external-access', { enabled: true }]
    ]
    for (const [verb, body] of asked)
      t.match(await ann.post(`${path}/${verb}`, body), { status: 409 }, `${verb} during ${except}`)
  }
  const dumps = await heldDumps(t, lab, made)
  await ann.post(`${path}/backups`)
  await dumps.untilOneWaits()
  t.match(await ann.post(`${path}/backups`), { status: 409, body: { error: /already in progress/ } })
  await others('a backup')
  await dumps.release()
  const { id: backupId, status } = await untilEnded(ann, path, 'backups')
  t.equal(status, 'succeeded')
  await untilRunning(ann, path)

  const answers = await Promise.all([
    ann.post(`${path}/restore`, { backup_id: backupId }),
    ann.post(`${path}/restore`, { backup_id: backupId })
  ])
  t.same(answers.map(answer => answer.status).sort(), [202, 409], 'of two restores at once one begins')
  await until(async () => (await ann.get(path)).body.status === 'creating', 'the restore to begin')
  t.match(await ann.post(`${path}/restore`, { backup_id: backupId }), { status: 409 })
  t.match(await ann.post(`${path}/backups`), { status: 409 })
  await others('a restore')
  t.match(await untilEnded(ann, path, 'restores'), { status: 'succeeded' })
  await untilRunning(ann, path)
  t.equal((await ann.get(`${path}/restores`)).body.length, 1)
  t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
})
