import { createTestKernel, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'

const path = '/api/x/hello/greetings'

test('the hello plugin', async t => {
  const clock = testClock('2026-01-01T12:00:00Z')
  const k = await createTestKernel({ plugins: [new URL('..', import.meta.url)], clock })
  t.teardown(() => k.close())

  await t.test('a greeting is made and kept, and the list begins with the newest', async t => {
    const writer = await k.as.token('write')
    await clock.advance(1000)
    const at = clock.now()
    const ada = await writer.post(path, { name: 'Ada' })
    t.equal(ada.status, 201)
    t.match(ada.body, {
      id: /^[0-9a-f-]{36}$/,
      message: 'Hello, Ada!',
      created_at: at.toISOString()
    })

    await clock.advance(1000)
    const grace = await writer.post(path, { name: 'Grace' })
    const reader = await k.as.token('read')
    t.same((await reader.get(`${path}?limit=2`)).body, [grace.body, ada.body])
    t.same((await reader.get(`${path}?limit=1&offset=1`)).body, [ada.body])
  })

  await t.test('a greeting needs a name of 1 to 100 characters', async t => {
    const writer = await k.as.token('write')
    for (const body of [{}, { name: '' }, { name: 7 }, { name: 'x'.repeat(101) }]) {
      const answer = await writer.post(path, body)
      t.equal(answer.status, 400, JSON.stringify(answer.body))
      t.match(answer.body.error, /name/)
    }
  })

  await t.test('who may only read may not greet, and nobody may without a credential', async t => {
    t.equal((await (await k.as.token('read')).post(path, { name: 'Ada' })).status, 403)
    t.equal((await k.as.anonymous().get(path)).status, 401)
  })

  await t.test('who listens hears of a greeting', async t => {
    const socket = await k.socket(await k.as.token('read'))
    t.teardown(() => socket.close())
    socket.subscribe('x:hello:greetings')
    // a subscription is not acknowledged, but frames are taken in order and a refused one is answered
    socket.subscribe('x:hello:nothing')
    await socket.next(frame => frame.event === 'error')

    const made = await (await k.as.token('write')).post(path, { name: 'Alan' })
    const frame = await socket.next(frame => frame.event === 'greeted')
    t.same(frame, { channel: 'x:hello:greetings', event: 'greeted', data: made.body })
  })

  await t.test('the salutation is a setting', async t => {
    const admin = await k.as.session()
    t.equal((await admin.put('/api/plugins/hello/config', { salutation: 'Ahoy' })).status, 200)
    t.match((await admin.post(path, { name: 'Ada' })).body, { message: 'Ahoy, Ada!' })
    t.equal((await admin.put('/api/plugins/hello/config', { salutation: 7 })).status, 400)
    t.equal((await admin.put('/api/plugins/hello/config', { salutation: 'Hello' })).status, 200)
  })

  await t.test('greetings outlive being turned off', async t => {
    const admin = await k.as.session()
    t.equal((await admin.post(path, { name: 'Ada' })).status, 201)
    const kept = (await admin.get(path)).body
    t.ok(kept.length > 0)

    t.equal((await admin.post('/api/plugins/hello/disable', {})).status, 200)
    const off = await admin.get(path)
    t.equal(off.status, 404)
    t.match(off.body.error, /hello/)

    t.equal((await admin.post('/api/plugins/hello/enable')).status, 200)
    t.same((await admin.get(path)).body, kept)
  })
})
