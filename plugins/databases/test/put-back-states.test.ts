import { Readable } from 'node:stream'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { sourceOf, sourceOptions, work } from '../../backups/test/source-keeper.js'
import { containerOf, createDatabase, startLab, untilStatus } from './lab.js'

const body = { type: 'other', image: 'redis:7', container_port: 6379, name: 'files' }
const broken = () => ({
  format: 'volume-tar',
  databases: [],
  version: '',
  bytes: 4,
  content: Readable.from([Buffer.from('none')])
})

test('nothing is begun with a database whose credentials cannot be read', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, sourceOptions)
  const { k } = lab
  const { id } = await createDatabase(lab, body)
  const source = sourceOf('database')
  const seen = async () => await k.query('select status, task, credentials from databases.database')
  const [row] = await k.query<{ credentials: string }>('select credentials from databases.database')
  await k.query("update databases.database set credentials = 'lost'")
  const before = [{ status: 'running', task: null, credentials: 'lost' }]
  t.same(await seen(), before)
  await t.rejects(source.dump(id, { databases: [], quiesce: false }, work()), {
    code: 'E_DATABASE_UNREADABLE'
  })
  t.same(await seen(), before, 'after a backup')
  await t.rejects(source.restore(id, broken(), work()), { code: 'E_DATABASE_UNREADABLE' })
  t.same(await seen(), before, 'after a restore')
  await k.query('update databases.database set credentials = $1', [row?.credentials])
})

test('a database that had failed has failed still when a restore into it comes to nothing', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t, sourceOptions)
  const { k, ann } = lab
  const { id, path } = await createDatabase(lab, body)
  const container = new Docker().getContainer(await containerOf(k, id))
  await container.kill()
  await untilStatus(ann, path, 'failed')
  await k.query('create table databases.seen (status text)')
  await k.query(`
    create function databases.note_seen() returns trigger language plpgsql as $$
    begin
      insert into databases.seen values (new.status);
      return new;
    end $$`)
  await k.query(
    'create trigger note_seen after update on databases.database for each row execute function databases.note_seen()'
  )
  const source = sourceOf('database')
  const failing = work()
  await t.rejects(source.restore(id, broken(), failing))
  await source.settle(id, 'restore', failing)
  t.match((await ann.get(path)).body, { status: 'failed', status_detail: /does not run/ })
  const seen = await k.query<{ status: string }>('select distinct status from databases.seen')
  t.notOk(
    seen.some(({ status }) => status === 'running'),
    'nobody was told that it runs'
  )
  t.equal((await container.inspect()).State.Running, false, 'it is as it was')
  await ann.post(`${path}/start`)
  await until(async () => (await ann.get(path)).body.status === 'running', 'it runs when it is started')
  const again = work()
  await t.rejects(source.restore(id, broken(), again))
  await source.settle(id, 'restore', again)
  t.equal((await ann.get(path)).body.status, 'running', 'one that runs is put back to that')
})
