import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { startS3Server } from '../../../lab/s3-server.js'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { storedIn } from '../../backups/test/kit.js'
import { fillDisk, mebi, startEngineLab } from './engine-lab.js'
import { createDatabase, runIn, untilRunning } from './lab.js'
import { leftOf, untilEnded } from './postgres-lab.js'

const keyBytes = 4 * mebi
const keys = 10
const dumpMib = (keys * keyBytes) / mebi

test('a Redis restore for which the disk has no room leaves what was there, and says why', async t => {
  if (!(await requireDatabaseImages(t)) || !(await requireSecondEngine(t))) return
  const lab = await startEngineLab(t, { images: ['busybox:lab', 'redis:7'], diskBytes: 700 * mebi })
  const { ann, k, engine } = lab
  await k.configure('builds', { disk_floor_mib: 128 })
  const s3 = await startS3Server(t)
  const made = await createDatabase(lab, { type: 'redis', version: '7' })
  const { body } = await ann.get(`${made.path}/credentials/reveal`)
  const env = { REDISCLI_AUTH: body.credentials.password }
  const cli = async (...words: string[]) =>
    await runIn(k, made.id, ['redis-cli', '-h', '127.0.0.1', ...words], env)
  const fill = `for n in $(seq ${keys}); do head -c ${keyBytes} /dev/urandom | redis-cli -h 127.0.0.1 -x set large$n; done`
  await runIn(k, made.id, ['sh', '-c', fill], env)
  await cli('set', 'kept', 'before')
  const run = await storedIn({ admin: ann, project: lab.projectId }, s3, made.path)
  await run()
  const backup = await untilEnded(ann, made.path, 'backups')
  t.equal(backup.status, 'succeeded', backup.log)
  await untilRunning(ann, made.path)
  await cli('set', 'kept', 'acknowledged')

  /** Of the room that is there when it is asked for, others take what is not left, before it has read the dump. */
  const restoredInto = async (leftMib: number, isThere: 'before' | 'meanwhile') => {
    const before = (await ann.get(`${made.path}/restores`)).body.length as number
    let filled: Promise<() => Promise<void>> | undefined
    const fillOnce = async (): Promise<void> => {
      filled ??= fillDisk(engine, leftMib * mebi)
      await filled
    }
    s3.fault = async ({ method }) => {
      if (method === 'GET') await fillOnce()
      return undefined
    }
    if (isThere === 'before') await fillOnce()
    t.match(await ann.post(`${made.path}/restore`, { backup_id: backup.id }), { status: 202 })
    const restore = await untilEnded(ann, made.path, 'restores', before)
    t.equal(await cli('get', 'kept'), 'acknowledged', 'it serves also while there is no room')
    s3.fault = undefined
    await (await filled)?.()
    return restore
  }

  const cases = [
    [
      'there is not even room for the dump',
      0,
      0.5,
      'before',
      /^there is too little room on the disk .*: make room on it, .*nothing was touched/
    ],
    [
      'the disk is watched, and others fill it',
      128,
      0,
      'meanwhile',
      /^the disk of the engine runs short: .*: make room on it/
    ],
    [
      'there is room for the dump alone',
      0,
      1.5,
      'meanwhile',
      /too little room on the disk of the engine: .*make room on it/
    ],
    [
      'there is none when it is read',
      0,
      0.2,
      'meanwhile',
      /^the disk of the engine is full, but for \d+ MiB: make room on it/
    ]
  ] as const
  for (const [what, floor, dumps, when, words] of cases)
    await t.test(`where ${what}`, async t => {
      await k.configure('builds', { disk_floor_mib: floor })
      const restore = await restoredInto(floor === 0 ? Math.round(dumps * dumpMib) : floor - 28, when)
      t.match(restore, { status: 'failed', error: words }, restore.log)
      t.equal((await ann.get(made.path)).body.status, 'running')
      t.match(await leftOf(k, made), { containers: [made.slug], volumes: 1 })
    })

  await t.test('and with room for all that it keeps for a time it is restored', async t => {
    await k.configure('builds', { disk_floor_mib: 0 })
    const free = await fillDisk(engine, Math.round(3.5 * dumpMib) * mebi)
    await ann.post(`${made.path}/restore`, { backup_id: backup.id })
    const restore = await untilEnded(ann, made.path, 'restores', cases.length)
    t.match(restore, { status: 'succeeded' }, `${restore.error} ${restore.log}`)
    await untilRunning(ann, made.path)
    t.equal(await cli('get', 'kept'), 'before')
    await free()
  })
})
