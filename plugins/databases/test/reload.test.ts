import { randomBytes } from 'node:crypto'
import Docker from 'dockerode'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { containerOf, createDatabase, runIn, startLab, untilRunning } from './lab.js'

test('a reload makes the container of the image of before, whatever its name stands for by now', async t => {
  if (!(await requireDatabaseImages(t))) return
  const docker = new Docker()
  const repo = `lab-${randomBytes(4).toString('hex')}`
  t.teardown(async () => {
    await docker.getImage(`${repo}:1`).remove({ force: true })
  })
  const lab = await startLab(t)
  const { k, ann } = lab
  await docker.getImage('redis:7').tag({ repo, tag: '1' })
  const made = await createDatabase(lab, { type: 'other', image: `${repo}:1`, container_port: 6379 })
  const cli = async (...words: string[]) =>
    await runIn(k, made.id, ['redis-cli', '-h', '127.0.0.1', ...words])
  await cli('set', 'kept', 'yes')
  const { body: before } = await ann.get(made.path)
  const container = await containerOf(k, made.id)
  await docker.getImage('busybox:lab').tag({ repo, tag: '1' })

  t.match(await ann.post(`${made.path}/reload`), { status: 202, body: { status: 'creating' } })
  await untilRunning(ann, made.path)
  t.match((await ann.get(made.path)).body, { image: `${repo}:1`, image_digest: before.image_digest })
  t.not(await containerOf(k, made.id), container)
  t.equal(await cli('get', 'kept'), 'yes')
})
