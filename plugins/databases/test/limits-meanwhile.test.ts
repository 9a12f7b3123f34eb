import { containerRuntime } from 'busbar/api/containers'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { containerOf, startLab, untilRunning } from './lab.js'
import { filledPostgres, heldDumps, untilEnded } from './postgres-lab.js'
import { slowDatabase, untilEnding } from './slow-lab.js'

const memory = 200 * 2 ** 20

test('limits that are set while a database is backed up hold at once', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await filledPostgres(lab, '15')
  const dumps = await heldDumps(t, lab, made)
  await ann.post(`${made.path}/backups`)
  await dumps.untilOneWaits()
  t.match(await ann.put(made.path, { memory_limit: memory }), { status: 200, body: { memory_limit: memory } })
  const limit = async () =>
    (await k.service(containerRuntime).stats(await containerOf(k, made.id))).memoryLimitBytes
  t.equal(await limit(), memory)
  await dumps.release()
  t.match(await untilEnded(ann, made.path, 'backups'), { status: 'succeeded' })
  await untilRunning(ann, made.path)
  t.equal(await limit(), memory)
})

test('limits that are set while the container of a database is made anew hold in the new one', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const made = await slowDatabase(t, lab)
  const before = await containerOf(k, made.id)
  t.match(await ann.post(`${made.path}/reload`), { status: 202 })
  // The new one is about to be made, with what was read before.
  await untilEnding(lab, { ...made })
  t.match(await ann.put(made.path, { memory_limit: memory }), { status: 200, body: { memory_limit: memory } })
  await untilRunning(ann, made.path)
  const after = await containerOf(k, made.id)
  t.not(after, before)
  t.equal((await k.service(containerRuntime).stats(after)).memoryLimitBytes, memory)
})
