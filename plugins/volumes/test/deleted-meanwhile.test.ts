import { type ContainerPartsSource, containerParts } from 'busbar/api/deployments'
import { definePlugin } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { openLab } from '../../deployments/test/deploy-lab.js'
import { hasVolume, volumeApplication } from './volume-lab.js'

const engineName = (applicationId: string): string => `busbar-vol-${applicationId.slice(0, 8)}-data`
const pause = async (ms: number): Promise<void> => await new Promise(resolve => setTimeout(resolve, ms))

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
  let goOn = (): void => {}
  asking = new Promise(resolve => {
    goOn = resolve
  })
  const deployed = web.deployed()
  await until(() => isAsked, 'the deploy to know its volumes')
  // What was asked beside has answered by now.
  await pause(1_000)
  t.equal((await admin.delete(`${web.path}/volumes/${again.id}?delete_data=true`)).status, 200)
  await lab.k.runRemovalsNow()
  await pause(5_000)
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
  await pause(3_000)
  await holder.query('select pg_advisory_unlock(4711)')
  await deployed
  t.equal(await web.run('ls -d /data | wc -l'), '1', 'it was deleted behind the begin of the deploy')
  await web.deployed('reload')
  t.equal(await web.run('ls -d /data 2>/dev/null | wc -l'), '0')
  await until(async () => !(await hasVolume(name)), 'its files are gone', 60_000)
})
