import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { type Test, test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { startS3Server } from '../../../lab/s3-server.js'
import { ended, storedIn } from '../../backups/test/kit.js'
import { engine, openLab } from '../../deployments/test/deploy-lab.js'
import { sourceOf, sourceOptions, stored, work } from './source-lab.js'
import { engineNameOf, everythingIn, sparesOf, volumeApplication } from './volume-lab.js'

/** An application whose volume has a file, and the archive of what was in it before. */
async function opened(t: Test) {
  const lab = await openLab(sourceOptions)
  t.teardown(() => lab.close())
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  await web.deployed()
  await web.run('echo one > /data/file')
  const dump = await sourceOf().dump(id, { databases: [], quiesce: false }, work())
  const tar = await buffer(dump.content)
  await sourceOf().settle(id, 'backup', work())
  await web.run('echo two > /data/file')
  return { lab, web, id, tar, admin: await lab.k.as.session() }
}

test('of two restores into one volume the second is refused, and loses nothing', async t => {
  if (!(await requireEngine(t))) return
  const s3 = await startS3Server(t)
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const { id } = await web.addVolume('data', '/data')
  const { id: otherId } = await web.addVolume('other', '/other')
  await web.deployed()
  const [path, otherPath] = [`${web.path}/volumes/${id}`, `${web.path}/volumes/${otherId}`]
  const backUp = async (of: string): Promise<string> => {
    await (await storedIn({ admin, project: lab.projectId }, s3, of))()
    const backup = await ended(admin, `${of}/backups`)
    t.match(backup, { status: 'succeeded' })
    return backup.id
  }
  await web.run('echo one > /data/file; echo other > /other/file')
  const backupId = await backUp(path)
  const before = await everythingIn(engineNameOf(web.id, 'data'))
  const otherBackupId = await backUp(otherPath)
  await web.run('rm /data/file; echo two > /data/later')

  let goOn = (): void => {}
  const reading = new Promise<undefined>(resolve => {
    goOn = () => resolve(undefined)
  })
  t.teardown(() => goOn())
  s3.fault = ({ method, key }) => (method === 'GET' && key !== '' ? reading : undefined)
  const restore = async (from: string, backup: string) =>
    await admin.post(`${from}/backups/${backup}/restore`, { target_volume_id: id })
  const both = await Promise.all([restore(path, backupId), restore(path, backupId)])
  t.same(both.map(({ status }) => status).sort(), [202, 409], 'of two at once one begins')
  const busy = { status: 409, body: { code: 'E_RESTORE_BUSY', error: 'a restore is already in progress' } }
  t.match(
    both.find(({ status }) => status === 409),
    busy
  )
  await until(() => s3.requests.some(({ method, key }) => method === 'GET' && key !== ''), 'it to be read')
  t.match(await restore(path, backupId), busy)
  t.match(await restore(otherPath, otherBackupId), busy, 'nor one of another backup')
  const config = (await admin.get(`${path}/backup-configs`)).body[0].id as string
  t.match(await admin.post(`${path}/backup-configs/${config}/run`), busy, 'nor is it backed up meanwhile')
  t.equal(await web.run('cat /data/later; cat /other/file'), 'two\nother', 'the application goes on')
  goOn()
  t.match(await ended(admin, `${path}/restores`), { status: 'succeeded', backup_id: backupId })
  t.equal((await admin.get(`${path}/restores`)).body.length, 1)
  await until(async () => (await admin.get(web.path)).body.status === 'running', 'it runs again')
  t.equal(await everythingIn(engineNameOf(web.id, 'data')), before)
  t.equal(await web.run('cat /other/file'), 'other')
  t.equal((await restore(otherPath, otherBackupId)).status, 202, 'then another one begins')
  t.match(await ended(admin, `${path}/restores`), { status: 'succeeded', backup_id: otherBackupId })
})

test('a restore of a volume that is deleted leaves the files to one of its name', async t => {
  if (!(await requireEngine(t))) return
  const { lab, web, id, tar, admin } = await opened(t)
  let goOn = (): void => {}
  const rest = new Promise<void>(resolve => {
    goOn = resolve
  })
  t.teardown(() => goOn())
  const content = Readable.from(
    (async function* () {
      yield tar.subarray(0, 512)
      await rest
      yield tar.subarray(512)
    })()
  )
  const restoring = sourceOf().restore(id, { ...stored(tar), content }, work())
  restoring.catch(() => {})
  await until(async () => (await sparesOf(id)).length === 1, 'it to be unpacked')
  t.equal((await admin.delete(`${web.path}/volumes/${id}`)).status, 200)
  await lab.k.runRemovalsNow()
  await until(
    async () =>
      (await admin.post(`${web.path}/volumes`, { name: 'data', mount_path: '/data' })).status === 201,
    'its name to be free'
  )
  goOn()
  await t.rejects(restoring, /the volume does not exist any more/)
  await sourceOf().settle(id, 'restore', work())
  await until(async () => (await web.container()).State.Running, 'it runs')
  t.equal(await web.run('cat /data/file'), 'two')
  await until(async () => (await sparesOf(id)).length === 0, 'what was unpacked to go', 60_000)
})

test('nobody starts an application before a restore is over whose volume was deleted', async t => {
  if (!(await requireEngine(t))) return
  const { lab, web, id, tar, admin } = await opened(t)
  await sourceOf().restore(id, stored(tar), work())
  t.equal((await admin.delete(`${web.path}/volumes/${id}`)).status, 200)
  await lab.k.runRemovalsNow()
  t.match(await admin.post(`${web.path}/start`), {
    status: 409,
    body: { error: /a restore of its volume data is under way/ }
  })
  await sourceOf().settle(id, 'restore', work())
  await until(async () => (await web.container()).State.Running, 'it runs')
  t.equal(await web.run('cat /data/file'), 'one')
})

test('what a restore makes behind the end of its application goes when it is over', async t => {
  if (!(await requireEngine(t))) return
  const { lab, web, id, tar, admin } = await opened(t)
  // Stops it between the note of what it makes and that.
  await lab.k.query(`
    create function volumes.wait_for_test() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(4712);
      return new;
    end $$`)
  await lab.k.query(
    'create trigger wait_for_test before insert on volumes.backup_work for each row execute function volumes.wait_for_test()'
  )
  const holder = new pg.Client({ connectionString: lab.k.state.database.url })
  await holder.connect()
  t.teardown(() => holder.end())
  await holder.query('select pg_advisory_lock(4712)')
  const restoring = sourceOf()
    .restore(id, stored(tar), work())
    .catch(() => {})
  const waits =
    "select from pg_locks where locktype = 'advisory' and objid = 4712 and not granted and database = (select oid from pg_database where datname = current_database())"
  await until(async () => (await holder.query(waits)).rowCount === 1, 'it to be about to make its volumes')
  t.equal((await admin.delete(web.path)).status, 200)
  await until(async () => {
    await lab.k.runRemovalsNow()
    return (await lab.k.query('select from applications.application where id = $1', [web.id])).length === 0
  }, 'the application to be gone')
  await holder.query('select pg_advisory_unlock(4712)')
  await restoring
  await sourceOf().settle(id, 'restore', work())
  const { Volumes: all } = await engine.listVolumes()
  const own = [engineNameOf(web.id, 'data'), ...(await sparesOf(id))]
  t.same(
    (all ?? []).map(({ Name }) => Name).filter(name => own.includes(name)),
    []
  )
  t.same(await lab.k.query('select from volumes.backup_work'), [])
})
