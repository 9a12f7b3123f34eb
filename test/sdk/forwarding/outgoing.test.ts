import { test } from 'tap'
import { startOrigin } from '../../../plugins/direct/test/origin.js'
import { openOutgoing } from '../../../sdk/http1/forwarding/outgoing.js'
import { createUpstream } from '../../../sdk/http1/forwarding/upstream.js'

test('a head that node refuses to write is no exception: nobody is asked', async t => {
  let asked = 0
  const origin = await startOrigin((_, response) => {
    asked += 1
    response.end()
  })
  t.teardown(() => origin.close())
  const upstream = createUpstream(origin.target)
  const heads: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'trailers without chunks': { Trailer: 'X', 'Content-Length': '0' },
    'a name that is none': { 'X A': '1' },
    'a value with the end of a line': { 'X-A': 'a\r\nb' }
  }
  for (const [title, headers] of Object.entries(heads))
    for (const hasBody of [true, false])
      t.equal(openOutgoing(upstream, { method: 'GET', path: '/', headers }, hasBody), undefined, title)
  t.equal(
    openOutgoing(upstream, { method: 'GET', path: '/a b', headers: {} }, false),
    undefined,
    'a path that is none'
  )
  const good = openOutgoing(
    upstream,
    { agent: false, method: 'GET', path: '/', headers: { Host: 'a' } },
    false
  )
  await new Promise(resolve => good?.once('response', answer => answer.resume().once('end', resolve)))
  t.equal(asked, 1)
})
