import { containerRuntime } from 'busbar/api/containers'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, startLab, untilRunning } from './lab.js'
import { leftOf, untilEnded } from './postgres-lab.js'

test('the volume from before a restore', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await createDatabase(lab, { type: 'redis', version: '7' })
  const names = async () => await k.service(containerRuntime).volumeNames({ databaseId: made.id })
  const [former] = await names()
  await ann.post(`${made.path}/backups`)
  const backup = await untilEnded(ann, made.path, 'backups')
  await untilRunning(ann, made.path)

  await t.test('is no part of it: the database is free before that is removed', async t => {
    await k.holdJobs('databases')
    await ann.post(`${made.path}/restore`, { backup_id: backup.id })
    t.match(await untilEnded(ann, made.path, 'restores'), { status: 'succeeded' })
    t.match((await ann.get(made.path)).body, { status: 'running' })
    t.equal((await names()).length, 2)
    t.ok((await names()).includes(former ?? ''))
  })

  await t.test('goes, though the plugin was stopped in between', async t => {
    await k.disable('databases', { cascade: true })
    await k.enable('databases')
    t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
    t.notOk((await names()).includes(former ?? ''))
  })

  await t.test('goes alone: the one that serves stays, whoever says that it was given up', async t => {
    const [volume] = await names()
    await k.enqueue('databases', 'remove-volume', { databaseId: made.id, volume })
    t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
    t.same(await names(), [volume])
  })

  await t.test(
    'goes alone: one stays that was made since the archive the platform was restored from',
    async t => {
      const unknown = `${made.slug}-vol-01234567`
      const owner = { projectId: lab.projectId, databaseId: made.id }
      await k.service(containerRuntime).ensureVolume(unknown, owner)
      await ann.post(`${made.path}/restore`, { backup_id: backup.id })
      t.match(await untilEnded(ann, made.path, 'restores', 1), { status: 'succeeded' })
      t.match(await leftOf(k, made), { containers: [made.slug], volumes: 2 })
      t.ok((await names()).includes(unknown))
    }
  )
})
