import { testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type S3Server, startS3Server } from '../../../lab/s3-server.js'
import {
  createDatabase,
  ended,
  filesOf,
  largeLines,
  lines,
  type Opened,
  openPlatform,
  pathOf,
  removeDatabase,
  storedIn,
  untilTold
} from './kit.js'

/** A promise that the test resolves, at its end at the latest. */
function held(t: Test): { readonly promise: Promise<undefined>; release(): void } {
  let release = (): void => {}
  const promise = new Promise<undefined>(resolve => {
    release = () => resolve(undefined)
  })
  t.teardown(() => release())
  return { promise, release }
}

const rowsOf = async ({ k }: Pick<Opened, 'k'>, table: 'backup' | 'restore'): Promise<number> =>
  (await k.query(`select from backups.${table}`)).length

/** Until no backup is known, and the bucket has nothing of any. */
const untilNothing = async (opened: Opened, s3: S3Server): Promise<void> => {
  await until(async () => (await rowsOf(opened, 'backup')) === 0, 'all of the backup to go', 60_000)
  await until(() => s3.objects.size === 0 && s3.uploads().length === 0, 'its file to go', 60_000)
}

test('what is removed while a backup of it is under way ends that, and nothing of it stays', async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t)
  const { k, admin, project, probe } = opened
  const id = await createDatabase(opened, 'Large', largeLines())
  const run = await storedIn(opened, s3, pathOf(project, id))
  // A store that takes no more of it: nobody waits for the end of that.
  const stalled = held(t)
  s3.fault = ({ part }) => (part === 2 ? stalled.promise : undefined)
  await run()
  await until(() => s3.requests.some(({ part }) => part === 2), 'the upload to stall')
  await removeDatabase(opened, id, true)
  await untilNothing(opened, s3)
  t.ok(probe.calls.includes(`settle backup ${id}`), 'what was changed for it was put back')
  t.same((await admin.get('/api/notifications')).body.items, [], 'nobody is told that it has failed')
  t.equal((await k.query("select from graphile_worker.jobs where task_identifier ~ '^backups:'")).length, 0)
})

test('a folder of this machine has nothing of a backup whose owner was removed', async t => {
  for (const isProject of [false, true]) {
    const opened = await openPlatform(t)
    const { k, admin, project, probe } = opened
    const id = await createDatabase(opened, 'Held', lines(10_000))
    probe.hold = held(t).promise
    t.equal((await admin.post(`${pathOf(project, id)}/backups`)).status, 202)
    await until(async () => (await filesOf(k)).some(file => file.endsWith('.part')), 'it to be written')
    if (isProject) {
      t.equal((await admin.delete(`/api/projects/${project}`)).status, 200)
      await k.runRemovalsNow()
    } else await removeDatabase(opened, id, true)
    await until(async () => (await rowsOf(opened, 'backup')) === 0, 'all of the backup to go', 60_000)
    await until(async () => (await filesOf(k)).length === 0, 'its file to go', 60_000)
    const jobs = "select from graphile_worker.jobs where task_identifier ~ '^backups:'"
    await until(async () => (await k.query(jobs)).length === 0, 'its jobs to end')
    t.same(await filesOf(k), [])
  }
})

test('a backup that has ended while its owner was removed goes at once', async t => {
  const s3 = await startS3Server(t)
  // A clock that stands still: nobody looks whether it is still wanted.
  const opened = await openPlatform(t, { clock: testClock() })
  const { project } = opened
  const id = await createDatabase(opened, 'Small', lines(10))
  const run = await storedIn(opened, s3, pathOf(project, id))
  const arriving = held(t)
  s3.arrived = ({ method }) => (method === 'PUT' ? arriving.promise : undefined)
  await run()
  await until(() => s3.requests.some(({ method }) => method === 'PUT'), 'the file to be sent')
  await removeDatabase(opened, id, true)
  const isSwept = async (): Promise<boolean> =>
    (await opened.k.query("select from graphile_worker.jobs where task_identifier = 'backups:sweep'"))
      .length === 0
  await until(isSwept, 'who looks for what goes to pass it over')
  arriving.release()
  await untilNothing(opened, s3)
})

test('a file that comes to its destination behind the end of its project goes', async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t, { clock: testClock() })
  const { k, admin, project } = opened
  const run = await storedIn(opened, s3, pathOf(project, await createDatabase(opened, 'Small', lines(10))))
  const arriving = held(t)
  s3.arrived = ({ method }) => (method === 'PUT' ? arriving.promise : undefined)
  await run()
  await until(() => s3.requests.some(({ method }) => method === 'PUT'), 'the file to be sent')
  t.equal((await admin.delete(`/api/projects/${project}`)).status, 200)
  await k.runRemovalsNow()
  await until(async () => (await rowsOf(opened, 'backup')) === 0, 'what is known of the project to go')
  t.equal(s3.objects.size, 0)
  arriving.release()
  await until(() => s3.objects.size > 0, 'the file to come')
  await until(() => s3.objects.size === 0, 'and to go')
})

test('what is removed while something is restored into it ends that, and the file of the backup goes', async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t)
  const { admin, project, probe } = opened
  const id = await createDatabase(opened, 'Small', lines(10))
  const path = pathOf(project, id)
  await (await storedIn(opened, s3, path))()
  const backup = await ended(admin, `${path}/backups`)
  t.match(backup, { status: 'succeeded' })
  const stalled = held(t)
  s3.fault = ({ method, key }) => (method === 'GET' && key !== '' ? stalled.promise : undefined)
  t.equal((await admin.post(`${path}/restore`, { backup_id: backup.id })).status, 202)
  await until(
    () => s3.requests.some(({ method, key }) => method === 'GET' && key !== ''),
    'the file to be read'
  )
  await removeDatabase(opened, id, true)
  await untilNothing(opened, s3)
  t.notOk(probe.calls.includes(`restore ${id}`))
  const told = await untilTold(admin, ({ type }) => type === 'database.restore_failed')
  t.match(told[0]?.body, /was deleted/)
})

test('what is removed while a backup of it is proven ends that, and the file goes', async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t)
  const { admin, project, probe } = opened
  const id = await createDatabase(opened, 'Small', lines(10))
  const path = pathOf(project, id)
  await (await storedIn(opened, s3, path))()
  const backup = await ended(admin, `${path}/backups`)
  const copying = held(t)
  probe.holdCheck = copying.promise
  t.equal((await admin.post(`${path}/backups/${backup.id}/check`)).status, 202)
  await until(() => probe.calls.includes(`check ${id}`), 'it to be copied')
  await removeDatabase(opened, id, true)
  await untilNothing(opened, s3)
  t.ok(probe.calls.includes(`settle check ${id}`))
  t.same((await admin.get('/api/notifications')).body.items, [], 'nobody is told that it does not work')
})
