import { containerRuntime } from 'busbar/api/containers'
import { type ContainerPartsSource, containerParts } from 'busbar/api/deployments'
import { definePlugin } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { type DeployLab, openLab } from '../../deployments/test/deploy-lab.js'
import { hasVolume, volumeApplication } from './volume-lab.js'

const engineName = (applicationId: string): string => `busbar-vol-${applicationId.slice(0, 8)}-data`

/** What waits until the files of deleted volumes have been looked at: those of one that nothing has go after those of earlier ones. */
async function lookOf(lab: DeployLab): Promise<() => Promise<void>> {
  const other = await volumeApplication(lab, 'other')
  const { id } = await other.addVolume('data', '/data')
  const name = engineName(other.id)
  await lab.k.query('insert into volumes.engine_volume values ($1, $2)', [name, other.id])
  const owner = { projectId: lab.projectId, applicationId: other.id }
  await lab.k.service(containerRuntime).ensureVolume(name, owner)
  return async () => {
    const admin = await lab.k.as.session()
    await admin.delete(`${other.path}/volumes/${id}?delete_data=true`)
    await until(async () => !(await hasVolume(name)), 'files of deleted volumes to be removed', 120_000)
  }
}

test('files of a volume that is deleted while a deploy makes its container stay until that has gone', async t => {
  if (!(await requireEngine(t))) return
  let isAsked = false
  let asking: Promise<void> | undefined
  const slow: ContainerPartsSource = {
    partsFor: async () => {
      isAsked = asking !== undefined
      await asking
      return { volumes: [] }
    }
  }
  const definition = definePlugin({
    id: 'slow-parts',
    contributes: contribute => contribute(containerParts, 'slow-parts', slow)
  })
  const lab = await openLab({
    inline: [{ manifest: { id: 'slow-parts', requires: { deployments: '^0.1.0' } }, definition }]
  })
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const name = engineName(web.id)
  const first = await web.addVolume('data', '/data')
  await web.deployed()
  await web.run('echo one > /data/file')
  await admin.delete(`${web.path}/volumes/${first.id}`)
  await web.deployed('reload')
  await web.untilOne()
  const again = await web.addVolume('data', '/data')
  const lookAtDeleted = await lookOf(lab)
  await lab.k.query('create table volumes.noted (name text)')
  await lab.k.query(`
    create function volumes.see_note() returns trigger language plpgsql as $$
    begin
      insert into volumes.noted values (new.name);
      return new;
    end $$`)
  await lab.k.query(
    'create trigger see_note before insert on volumes.engine_volume for each row execute function volumes.see_note()'
  )
  let goOn = (): void => {}
  asking = new Promise(resolve => {
    goOn = resolve
  })
  t.teardown(() => goOn())
  const deployed = web.deployed()
  await until(
    async () => isAsked && (await lab.k.query('select from volumes.noted')).length > 0,
    'the deploy to know its volumes'
  )
  t.equal((await admin.delete(`${web.path}/volumes/${again.id}?delete_data=true`)).status, 200)
  await lab.k.runRemovalsNow()
  await lookAtDeleted()
  asking = undefined
  goOn()
  await deployed
  t.equal(await web.run('cat /data/file'), 'one', 'the container has it as it was')
  await web.deployed('reload')
  t.equal(await web.run('ls -d /data 2>/dev/null | wc -l'), '0')
  await until(async () => !(await hasVolume(name)), 'its files are gone', 60_000)
})

test('files of a volume that is deleted before a deploy has made it go behind that deploy', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session()
  const web = await volumeApplication(lab, 'web')
  const name = engineName(web.id)
  const { id } = await web.addVolume('data', '/data')
  const lookAtDeleted = await lookOf(lab)
  // Stops a deploy between its look at what there is and the note of what it makes.
  await lab.k.query(`
    create function volumes.wait_for_test() returns trigger language plpgsql as $$
    begin
      if new.discarded_at is null then perform pg_advisory_xact_lock(4711); end if;
      return new;
    end $$`)
  await lab.k.query(
    'create trigger wait_for_test before insert on volumes.engine_volume for each row execute function volumes.wait_for_test()'
  )
  const holder = new pg.Client({ connectionString: lab.k.state.database.url })
  await holder.connect()
  t.teardown(() => holder.end())
  await holder.query('select pg_advisory_lock(4711)')
  const deployed = web.deployed()
  await until(
    async () =>
      (
        await holder.query(
          "select from pg_locks where locktype = 'advisory' and objid = 4711 and not granted"
        )
      ).rowCount === 1,
    'the deploy to be about to note its volume'
  )
  t.equal((await admin.delete(`${web.path}/volumes/${id}?delete_data=true`)).status, 200)
  await lab.k.runRemovalsNow()
  await lookAtDeleted()
  await holder.query('select pg_advisory_unlock(4711)')
  await deployed
  t.equal(await web.run('ls -d /data | wc -l'), '1', 'it was deleted behind the begin of the deploy')
  await web.deployed('reload')
  t.equal(await web.run('ls -d /data 2>/dev/null | wc -l'), '0')
  await until(async () => !(await hasVolume(name)), 'its files are gone', 60_000)
})
