import { platformUpdates } from 'busbar/api/platform'
import { createTestKernel, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

async function platform(t: Test, options: Parameters<typeof createTestKernel>[0] = {}): Promise<TestKernel> {
  const k = await createTestKernel(options)
  t.teardown(async () => await k.close())
  return k
}
const isUpdating = async (k: TestKernel): Promise<boolean> =>
  (await k.as.anonymous().get('/api/version')).body.updating

test('an update that begins is told live and by the version, and so is one that is abandoned', async t => {
  const k = await platform(t)
  const socket = await k.socket(await k.as.session('member'))
  socket.subscribe('platform')
  await until(() => k.hasSubscribers('platform'), 'a subscription')
  const updates = k.service(platformUpdates)
  t.equal(await isUpdating(k), false)
  await updates.abandon()
  await updates.begin()
  t.same(await socket.next(({ channel }) => channel === 'platform'), {
    channel: 'platform',
    event: 'update',
    data: { updating: true }
  })
  t.equal(await isUpdating(k), true)
  await t.rejects(updates.begin(), { status: 409, code: 'E_PLATFORM_UPDATING' })
  await updates.abandon()
  await socket.next(
    ({ event, data }) => event === 'update' && (data as { updating: boolean }).updating === false
  )
  t.equal(await isUpdating(k), false)
  await updates.begin()
  t.equal(await isUpdating(k), true, 'the next one may begin')
  await socket.close()
})

test('all processes of an installation say so, and stop when the one that updates is gone', async t => {
  const clock = testClock(new Date())
  const one = await createTestKernel({ clock })
  let isClosed = false
  const close = async (): Promise<void> => {
    if (!isClosed) await one.close()
    isClosed = true
  }
  t.teardown(close)
  const two = await platform(t, { clock, state: one.state })
  await one.service(platformUpdates).begin()
  await until(async () => await isUpdating(two), 'the other process has heard of it')
  await t.rejects(two.service(platformUpdates).begin(), { code: 'E_PLATFORM_UPDATING' })
  await two.service(platformUpdates).abandon()
  t.equal(await isUpdating(two), true, 'only who has begun it abandons it')
  // As long as it is there, it says so again.
  for (let minute = 0; minute < 3; minute++)
    for (let third = 0; third < 3; third++) {
      await clock.advance(20_000)
      await two.as.anonymous().get('/api/version')
    }
  await one.service(platformUpdates).abandon()
  await until(async () => !(await isUpdating(two)), 'the other process has heard of its end')
  await one.service(platformUpdates).begin()
  await until(async () => await isUpdating(two), 'the next one')
  await close()
  await clock.advance(61_000)
  t.equal(await isUpdating(two), false)
})

test('an update that nobody ends is over after an hour', async t => {
  const clock = testClock(new Date())
  const k = await platform(t, { clock })
  await k.service(platformUpdates).begin()
  await clock.advance(3_599_000)
  t.equal(await isUpdating(k), true)
  await clock.advance(2_000)
  t.equal(await isUpdating(k), false)
  await k.service(platformUpdates).begin()
})

test('while the plugin is off the version says that nothing is updated', async t => {
  const k = await platform(t)
  await k.service(platformUpdates).begin()
  await k.disable('platform')
  t.equal(await isUpdating(k), false)
  await k.enable('platform')
  t.equal(await isUpdating(k), false)
})
