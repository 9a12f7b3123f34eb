import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { logArchive } from '../api.js'
import { RemovalStore } from '../kept/removal-store.js'
import { at, KeptLab, sharedPlatform } from './kept-lab.js'

takeAwayFromEngine()
const openLab = sharedPlatform()
const first = '11111111-1111-4111-8111-111111111111'
const second = '22222222-2222-4222-8222-222222222222'

test('lines go when they are older than the setting says, and the others stay', async t => {
  const clock = testClock('2026-01-05T03:04:05.000Z')
  const lab = await KeptLab.open({ clock })
  t.teardown(() => lab.close())
  const admin = await lab.k.as.session('admin')
  t.equal((await admin.put('/api/plugins/logs/config', { retention_days: 3 })).status, 200)
  t.match(await admin.put('/api/plugins/logs/config', { retention_days: 0 }), { status: 400 })
  const later = 5000
  const lists = Array.from({ length: 600 }, (_, n) => [
    { time: at(n < 560 ? n : later + n), text: `line ${n}` }
  ])
  await lab.write(lab.containerOf('a'), first, ...lists)
  await lab.write(lab.containerOf('b'), second, [{ time: at(2), text: 'old' }])
  const kept = async () =>
    await lab.k.query<{ text: string; lines: number; first_at: Date | null; last_at: Date | null }>(
      `select c.text, k.lines, k.first_at, k.last_at from logs.chunk c join logs.container k on k.key = c.container_key
      order by c.ordinal`
    )
  t.equal((await kept()).length, 601)
  t.match(await lab.k.query("select cron, missed from kernel.schedule where plugin = 'logs'"), [
    { cron: '17 * * * *', missed: 'run-once' }
  ])
  await clock.advance(2000)
  await lab.k.enqueue('logs', 'schedule.retention', {})
  await until(async () => (await kept()).length === 40, 'the old lines are gone')
  t.match((await kept())[0], {
    text: 'line 560',
    lines: 40,
    first_at: new Date(Date.parse(at(later + 560))),
    last_at: new Date(Date.parse(at(later + 599)))
  })
  await clock.advance(2 * later)
  await lab.k.enqueue('logs', 'schedule.retention', {})
  await until(async () => (await kept()).length === 0, 'the others are gone too')
  // The collector may have forgotten them, as the engine has none of that name.
  t.same(
    await lab.k.query(
      'select * from logs.container where lines <> 0 or first_at is not null or last_at is not null'
    ),
    []
  )
  t.same(await lab.k.query('select bytes from logs.source'), [{ bytes: 0 }])
})

test('lines are kept compressed, as PostgreSQL does it in the least time', async t => {
  const lab = await openLab()
  await lab.write(
    lab.containerOf('a'),
    first,
    Array.from({ length: 400 }, (_, n) => ({ time: at(n), text: `line ${n} ${'x'.repeat(60)}` }))
  )
  const [{ fastest } = { fastest: '' }] = await lab.k.query<{ fastest: string }>(
    `select case when 'lz4' = any (enumvals) then 'lz4' else 'pglz' end as fastest from pg_settings where name = 'default_toast_compression'`
  )
  t.match(
    await lab.k.query(
      `select pg_column_compression(text) as text, octet_length(text) > 4 * pg_column_size(text) as is_small from logs.chunk
      where source_id = $1`,
      [lab.applicationId]
    ),
    [{ text: fastest, is_small: true }]
  )
})

test('of a source that has more than it may, the oldest lines go', async t => {
  const lab = await openLab()
  const text = 'x'.repeat(1000)
  for (let n = 0; n < 30; n++)
    await lab.write(
      lab.containerOf('a'),
      first,
      Array.from({ length: 50 }, (_, m) => ({ time: at(n * 50 + m), text: `${n * 50 + m} ${text}` }))
    )
  const removals = new RemovalStore(lab.k.database('logs'))
  t.equal(await removals.removeBeyond(lab.applicationId, 10_000_000), false)
  t.equal((await lab.page()).total, '1500', 'it has not')
  while (await removals.removeBeyond(lab.applicationId, 500_000));
  const [source] = await lab.k.query<{ bytes: number }>('select bytes from logs.source where id = $1', [
    lab.applicationId
  ])
  t.ok(source !== undefined && source.bytes <= 500_000 && source.bytes > 400_000, String(source?.bytes))
  const { total } = await lab.page()
  const { messages } = await lab.page('?limit=1000')
  t.equal(messages.length, Number(total))
  t.match(messages[0], /^1499 /)
  t.match(messages.at(-1), new RegExp(`^${1500 - messages.length} `))
})

test('with an application goes all that it has written', async t => {
  const lab = await openLab()
  await lab.write(lab.containerOf('a'), first, [{ time: at(0), text: 'one' }])
  await lab.write(lab.containerOf('b'), second, [{ time: at(1), text: 'two' }])
  t.equal((await lab.client.delete(lab.path.replace(/\/logs$/, ''))).status, 200)
  t.equal((await lab.client.get(`${lab.path}/history`)).status, 404)
  const left = async () =>
    await lab.k.query(
      `select id::text from logs.source where id = $1 union all select container_id from logs.container where source_id = $1
      union all select text from logs.chunk where source_id = $1 union all select id::text from applications.application where id = $1`,
      [lab.applicationId]
    )
  await until(async () => (await left()).length === 0, 'nothing is left')
})

test('an application that is being deleted does not come back by what it still writes', async t => {
  const lab = await openLab()
  await lab.k.query('update applications.application set deleting_at = now() where id = $1', [
    lab.applicationId
  ])
  await t.rejects(lab.write(lab.containerOf('a'), first, [{ time: at(0), text: 'one' }]), {
    message: 'the container is not known'
  })
  t.same(await lab.k.query('select * from logs.source where id = $1', [lab.applicationId]), [])
})

test('a source is forgotten as a whole, and more than once', async t => {
  const lab = await openLab()
  await lab.write(
    lab.containerOf('a'),
    first,
    ...Array.from({ length: 510 }, (_, n) => [{ time: at(n), text: `line ${n}` }])
  )
  const archive = lab.k.service(logArchive)
  await archive.forget(lab.applicationId)
  t.same((await lab.page()).rows, [])
  t.same(await lab.k.query('select * from logs.container where source_id = $1', [lab.applicationId]), [])
  await archive.forget(lab.applicationId)
  await lab.write(lab.containerOf('a'), first, [{ time: at(0), text: 'again' }])
  t.same((await lab.page()).messages, ['again'])
})

test('containers without lines are forgotten when the engine has them no more', async t => {
  const lab = await openLab()
  await lab.write(lab.containerOf('a'), first, [{ time: at(0), text: 'one' }])
  await lab.write(lab.containerOf('b'), first)
  await lab.write(lab.containerOf('c'), first)
  await new RemovalStore(lab.k.database('logs')).forgetContainers([lab.containerOf('b')])
  t.same(
    (
      await lab.k.query<{ container_id: string }>(
        'select container_id from logs.container where source_id = $1 order by 1',
        [lab.applicationId]
      )
    ).map(({ container_id: id }) => id),
    [lab.containerOf('a'), lab.containerOf('b')]
  )
})
