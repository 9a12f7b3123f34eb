import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { goOn, killedAt, projectOf } from './crash-lab.js'
import { containerOf, createDatabase, runIn, untilRunning } from './lab.js'
import { untilUpgraded } from './postgres-lab.js'

test('the new volume of an upgrade that is given up after it has served is kept', async t => {
  if (!(await requireDatabaseImages(t))) return
  const first = await createTestKernel()
  const lab = await projectOf(first)
  const made = await createDatabase(lab, { type: 'postgres', version: '14' })
  const { state } = first
  await first.stop()
  await killedAt(
    state,
    { path: made.path, post: `${made.path}/upgrade`, body: { target_version: '15' } },
    /^starting version 15.*-vol-[0-9a-f]{8} with a container/
  )

  // It serves on while no platform runs; then it ends, and does not start again.
  const docker = new Docker()
  const container = docker.getContainer(made.slug)
  await container.start().catch(() => {})
  const inside = async (...argv: string[]): Promise<number | null> => {
    const exec = await container.exec({ Cmd: argv, AttachStdout: true, AttachStderr: true })
    const stream = await exec.start({})
    stream.resume()
    await until(async () => !(await exec.inspect()).Running, 'the program to end')
    return (await exec.inspect()).ExitCode
  }
  const sql = [
    'psql',
    '-U',
    'postgres',
    '-d',
    'shop',
    '-c',
    'create table acknowledged as select 1 as n; checkpoint'
  ]
  await until(async () => (await inside(...sql)) === 0, 'a row to be acknowledged')
  t.equal(await inside('rm', '/var/lib/postgresql/data/PG_VERSION'), 0)
  await container.kill()

  const k = await goOn(t, state)
  const ann = await k.as.session('ann')
  const upgrade = await untilUpgraded(ann, made)
  t.match(upgrade, {
    phase: 'failed',
    error: /its server ends.* in the volume \S+-vol-[0-9a-f]{8}, which is kept/s
  })
  await untilRunning(ann, made.path)
  const { body } = await ann.get(made.path)
  t.match(body, { version: '14', status_detail: /which is kept until/ })
  const { body: revealed } = await ann.get(`${made.path}/credentials/reveal`)
  const answer = await runIn(
    k,
    made.id,
    [
      'psql',
      '-h',
      '127.0.0.1',
      '-U',
      'postgres',
      '-d',
      'shop',
      '-A',
      '-t',
      '-c',
      "select to_regclass('acknowledged') is null"
    ],
    { PGPASSWORD: revealed.credentials.password }
  )
  t.equal(answer, 't')
  const volumes = async () => await k.service(containerRuntime).volumeNames({ databaseId: made.id })
  const [kept] = /\S+-vol-[0-9a-f]{8}/.exec(upgrade.error) ?? []
  t.ok((await volumes()).includes(kept ?? ''), `${await volumes()}`)
  t.ok(Date.parse(upgrade.kept_until) > Date.now())
  t.ok(await containerOf(k, made.id))

  t.match(await ann.post(`${made.path}/upgrades/confirm`), { status: 200 })
  t.same(await volumes(), [`${made.slug}-vol`])
})
