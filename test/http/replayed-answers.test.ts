import { Readable } from 'node:stream'
import { allow, definePlugin, download, redirect, reply, sse } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

/** A platform with one operation that takes keys; what is sent to it twice with one key. */
async function twice(t: Test, handler: () => unknown) {
  const shop = definePlugin({
    id: 'shop',
    routes(route) {
      route({
        method: 'POST',
        url: '/api/shop',
        summary: 'Buy',
        access: allow.public('a test'),
        idempotent: true,
        handler
      })
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'shop' }, definition: shop }] })
  t.teardown(async () => {
    k.undeclaredAnswers()
    await k.close()
  })
  const send = async () => {
    const response = await fetch(`${k.url}/api/shop`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'idempotency-key': 'one' }
    })
    const header = (name: string) => response.headers.get(name)
    return {
      status: response.status,
      text: await response.text(),
      location: header('location'),
      cookie: header('set-cookie'),
      replayed: header('idempotent-replayed')
    }
  }
  return [await send(), await send()] as const
}

test('an answer is repeated with its headers and cookies', async t => {
  let runs = 0
  const cookie = { name: 'cart', value: 'full', path: '/', httpOnly: true, maxAgeSeconds: 5 }
  const [first, again] = await twice(t, () =>
    reply(201, { runs: ++runs }, { headers: { location: '/api/shop/1' }, cookies: [cookie] })
  )
  t.match(first, { status: 201, text: '{"runs":1}', location: '/api/shop/1', cookie: /^cart=full;/ })
  t.same(again, { ...first, replayed: 'true' })
})

test('a redirection is repeated as one', async t => {
  const [first, again] = await twice(t, () => redirect('/api/shop/2'))
  t.match(first, { status: 302, text: '', location: '/api/shop/2' })
  t.same(again, { ...first, replayed: 'true' })
})

test('an answer without a body is repeated without one', async t => {
  const [first, again] = await twice(t, () => reply(204, null))
  t.match(first, { status: 204, text: '' })
  t.same(again, { ...first, replayed: 'true' })
})

test('a stream, which cannot be repeated, is no answer to who sends a key, and nothing runs again', async t => {
  const streams = {
    download: () => download(Readable.from(['abc']), { type: 'text/plain', filename: 'a.txt' }),
    events: () =>
      sse(
        (async function* () {
          yield { data: 'x' }
        })()
      )
  }
  for (const [name, answer] of Object.entries(streams)) {
    let runs = 0
    const [first, again] = await twice(t, () => {
      runs++
      return answer()
    })
    t.match(first, { status: 500, text: /E_INTERNAL/ }, name)
    t.match(again, { status: 409, text: /E_IDEMPOTENCY_IN_PROGRESS/ }, name)
    t.equal(runs, 1, name)
  }
})
