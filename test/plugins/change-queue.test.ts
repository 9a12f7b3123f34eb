import { definePlugin } from 'busbar/sdk'
import { createTestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'

const inline = (id: string, start: () => object | Promise<object>) => ({
  manifest: { id },
  definition: definePlugin({ id, start })
})

test('who waits for the change of another plugin is told which one, and nothing is done then', async t => {
  const clock = testClock()
  let open = (): void => {}
  const gate = new Promise<object>(resolve => {
    open = () => resolve({})
  })
  let isSlow = false
  let starts = 0
  const slow = inline('slow', () => (isSlow ? gate : {}))
  const quick = inline('quick', () => {
    starts++
    return {}
  })
  const k = await createTestKernel({ inline: [slow, quick], clock })
  t.teardown(() => k.close())
  t.teardown(() => open())
  const admin = await k.as.session()
  const state = async (id: string) => (await admin.get(`/api/plugins/${id}`)).body.state

  t.match(await admin.post('/api/plugins/slow/disable'), { status: 200 })
  isSlow = true
  const enabling = admin.post('/api/plugins/slow/enable')
  await until(async () => (await state('slow')) === 'starting', 'it starts')
  t.match(
    await admin.get('/api/x/slow/anything'),
    { status: 503, body: { code: 'E_PLUGIN_STARTING' }, headers: { 'retry-after': '1' } },
    'who asks for what it will serve is told to ask again'
  )

  const begun = starts
  for (const what of ['reload', 'disable', 'enable', 'purge']) {
    let answer: Awaited<typeof enabling> | undefined
    void admin.post(`/api/plugins/quick/${what}`).then(found => {
      answer = found
    })
    const refused = await until(async () => {
      await clock.advance(10_000)
      return answer
    }, `${what} is answered`)
    t.match(
      refused,
      {
        status: 503,
        body: {
          code: 'E_PLUGINS_BUSY',
          error:
            'plugins are changed one at a time, and the start of "slow" is not over; nothing has been changed: try again'
        }
      },
      what
    )
    t.equal(refused.headers['retry-after'], '5')
  }
  open()
  t.match(await enabling, { status: 200, body: { state: 'running' } })
  t.equal(await state('quick'), 'running')
  t.equal(starts, begun, 'none of what was refused has been done after all')
  t.match(await admin.post('/api/plugins/quick/reload'), { status: 200 })
  t.equal(starts, begun + 1)
})

test('a plugin whose start fails is tried again by itself, and not by the changes of others', async t => {
  const clock = testClock()
  const plan: Array<() => object | Promise<object>> = []
  let starts = 0
  const failing = inline('failing', () => {
    starts++
    return plan.shift()?.() ?? {}
  })
  const k = await createTestKernel({ inline: [failing, inline('other', () => ({}))], clock })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const state = async () => (await admin.get('/api/plugins/failing')).body.state
  const fail = (): never => {
    throw new Error('not yet')
  }

  t.match(await admin.post('/api/plugins/failing/disable'), { status: 200 })
  plan.push(fail, fail, fail, fail)
  t.match(await admin.post('/api/plugins/failing/enable'), { status: 409 })
  for (const [delayMs, then] of [
    [1_000, 'retrying'],
    [5_000, 'retrying'],
    [30_000, 'failed']
  ] as const) {
    const before = starts
    t.match(await admin.post('/api/plugins/other/disable'), { status: 200 })
    t.match(await admin.post('/api/plugins/other/enable'), { status: 200 })
    t.match(await admin.post('/api/plugins/other/reload'), { status: 200 })
    t.equal(starts, before, 'others change without it')
    await clock.advance(delayMs)
    await until(async () => starts === before + 1 && (await state()) === then, `it is ${then}`)
  }
  const given = starts
  t.match(await admin.post('/api/plugins/other/disable'), { status: 200 })
  t.match(await admin.post('/api/plugins/other/enable'), { status: 200 })
  t.equal(starts, given, 'nor after the last try')
  t.match(await admin.post('/api/plugins/failing/enable'), { status: 200, body: { state: 'running' } })
})
