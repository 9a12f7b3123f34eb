import { createTestKernel, TestClient, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import {
  addMember,
  delivered,
  holds,
  makeProject,
  Stream,
  tell,
  titlesOf,
  toProject,
  toUser,
  url
} from './inbox-lab.js'

takeAwayFromEngine()

const there = (k: TestKernel, client: TestClient): TestClient => new TestClient(k.url, client.credential)

test('a stream brings what comes from now on, in every process, and nothing of others', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const two = await createTestKernel({ state: k.state, environment: { BUSBAR_ROLE: 'api' } })
  t.teardown(() => two.stop())
  const [ann, bob] = [await k.as.session('ann'), await k.as.session('bob')]
  await tell(k, { audience: toUser(ann.userId), title: 'before' })
  const [before] = await holds(ann, 1)
  const streams = [await Stream.open(ann), await Stream.open(there(two, ann))]
  const ofBob = await Stream.open(there(two, bob))
  const id = await tell(two, { audience: toUser(ann.userId), title: 'now', body: 'a\nb', link: '/x' })
  await tell(k, { audience: toUser(bob.userId), title: 'for bob' })
  for (const stream of [...streams, ofBob]) await stream.has(1)
  for (const { frames, answer } of streams) {
    t.match(answer.headers, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    t.match(frames, [{ id: '2', notification: { id, title: 'now', body: 'a\nb', link: '/x', read: false } }])
    t.same(
      Object.keys(frames[0]?.notification ?? {}).sort(),
      Object.keys(before ?? {}).sort(),
      'a row of the list'
    )
  }
  t.same(ofBob.titles, ['for bob'])
  t.same(
    [...streams, ofBob].map(({ pings }) => pings),
    [1, 1, 1],
    'a comment at once, and the next one in half a minute'
  )
  for (const stream of [...streams, ofBob]) stream.close()
})

test('a reader who comes again gets what has come since, once', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const say = async (title: string) => await tell(k, { audience: toUser(ann.userId), title })
  const first = await Stream.open(ann)
  await say('a')
  await first.has(1)
  first.close()
  await say('b')
  await delivered(k)
  await say('c')
  await delivered(k)
  const second = await Stream.open(ann, first.frames[0]?.id)
  await second.has(2)
  await say('d')
  await second.has(3)
  t.same(second.titles, ['b', 'c', 'd'])
  second.close()
  for (const nonsense of ['x', '-1', '1.5', '9999', '', '1'.repeat(400)]) {
    const stream = await Stream.open(ann, nonsense)
    await say(nonsense)
    await stream.has(1)
    t.same(stream.titles, [nonsense])
    stream.close()
  }
  const whole = await Stream.open(ann, '0')
  await whole.has(4)
  t.same(whole.titles.slice(0, 4), ['a', 'b', 'c', 'd'], '0 is the beginning')
  whole.close()
})

test('more than a reader is given at a time comes in order', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  await tell(k, { audience: toUser(ann.userId), title: '1' })
  await holds(ann, 1)
  await k.query(
    `with notice as (
      insert into notifications.notice (id, type, title, body, is_for_admins, created_at)
      select gen_random_uuid(), 'a.b', n::text, '', false, now() from generate_series(2, 230) n returning id, title)
    insert into notifications.entry (user_id, position, notice_id, created_at)
    select $1, title::int, id, now() from notice`,
    [ann.userId]
  )
  await k.query('update notifications.inbox set last_position = 230')
  const stream = await Stream.open(ann, '0')
  await stream.has(230)
  t.same(
    stream.titles,
    Array.from({ length: 230 }, (_, n) => String(n + 1))
  )
  stream.close()
})

test('a stream ends with its credential, at once and in every process', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const two = await createTestKernel({ state: k.state })
  t.teardown(() => two.stop())
  const ann = await k.as.session('ann')
  const token = await ann.post('/api/tokens', { name: 'ci', scopes: ['read'] })
  const byToken = new TestClient(two.url, { authorization: `Bearer ${token.body.token as string}` })
  const [stays, ends] = [await Stream.open(there(two, ann)), await Stream.open(byToken)]
  t.equal((await ann.delete(`/api/tokens/${token.body.id as string}`)).status, 200)
  await ends.ended
  await tell(k, { audience: toUser(ann.userId), title: 'after' })
  await stays.has(1)
  t.same(ends.titles, [])
  const admin = await k.as.session()
  t.equal((await admin.delete(`/api/users/${ann.userId ?? ''}`)).status, 200)
  await stays.ended
  t.pass('and with the user')
})

test('who loses a project hears nothing of it from then on, and goes on hearing the rest', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const two = await createTestKernel({ state: k.state })
  t.teardown(() => two.stop())
  const [ann, vic] = [await k.as.session('ann'), await k.as.session('vic')]
  const project = await makeProject(ann)
  await addMember(k, ann, project, 'vic')
  await holds(vic, 1)
  const [pinned, elsewhere] = [
    await k.as.token('read', { user: 'vic', pins: [project] }),
    await makeProject(vic, 'elsewhere')
  ]
  const streams = [await Stream.open(vic), await Stream.open(there(two, vic))]
  const ofToken = await Stream.open(there(two, pinned))
  await tell(k, { audience: toProject(project), title: 'one' })
  for (const stream of [...streams, ofToken]) await stream.has(1)
  t.equal((await ann.delete(`/api/projects/${project}/members/${vic.userId ?? ''}`)).status, 200)
  // Told to vic alone, who was a member when it happened.
  await tell(k, { audience: toUser(vic.userId, project), title: 'two' })
  await tell(k, { audience: toUser(vic.userId), title: 'three' })
  await tell(k, { audience: toProject(elsewhere), title: 'four' })
  for (const stream of streams) {
    await stream.has(3)
    t.same([...stream.titles].sort(), ['four', 'one', 'three'])
  }
  t.same(ofToken.titles, ['one'], 'a pinned token hears what is in its projects alone')
  for (const stream of [...streams, ofToken]) stream.close()
})

test('streams end when the plugin is turned off, and a reader goes on where it was after a reload', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const stream = await Stream.open(ann)
  await tell(k, { audience: toUser(ann.userId), title: 'one' })
  await stream.has(1)
  await k.reload('notifications')
  await stream.ended
  await tell(k, { audience: toUser(ann.userId), title: 'two' })
  const again = await Stream.open(ann, stream.frames.at(-1)?.id)
  await again.has(1)
  t.same(again.titles, ['two'])
  await k.disable('notifications')
  await again.ended
  t.match(await ann.get(url), { status: 404, body: { code: 'E_PLUGIN_OFF', plugin: 'notifications' } })
})

test('what a process was not told of is found by itself', async t => {
  const clock = testClock()
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  await tell(k, { audience: toUser(ann.userId), title: 'one' })
  await holds(ann, 1)
  const stream = await Stream.open(ann)
  // As another process that has lost its connection for notifications sees it.
  await k.query(
    `with notice as (
      insert into notifications.notice (id, type, title, body, is_for_admins, created_at)
      values (gen_random_uuid(), 'a.b', 'two', '', false, now()) returning id)
    insert into notifications.entry (user_id, position, notice_id, created_at) select $1, 2, id, now() from notice`,
    [ann.userId]
  )
  await until(async () => (await titlesOf(ann)).length === 2, 'it is in the list')
  t.same(stream.titles, [])
  await clock.advance(15_000)
  await stream.has(1)
  t.same(stream.titles, ['two'])
  stream.close()
})
