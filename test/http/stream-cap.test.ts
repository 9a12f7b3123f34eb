import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { allow, definePlugin, type SseFrame, sse } from 'busbar/sdk'
import { createTestKernel, type TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'

let given = 0
let ended = 0

async function* silent(signal: AbortSignal): AsyncGenerator<SseFrame> {
  given++
  try {
    yield { data: 'here' }
    await once(signal, 'abort')
  } finally {
    ended++
  }
}

const streams = {
  manifest: { id: 'streams' },
  definition: definePlugin({
    id: 'streams',
    routes(route) {
      route({
        method: 'GET',
        url: '/api/streams/own',
        summary: 's',
        access: allow.token('read', { project: 'none' }),
        handler: ({ signal }) => sse(silent(signal))
      })
      route({
        method: 'GET',
        url: '/api/streams/open',
        summary: 's',
        access: allow.public('a test'),
        handler: ({ signal }) => sse(silent(signal))
      })
    }
  })
}

test('a user has so many event streams open at once, by whatever credential, and others have theirs', async t => {
  const k = await createTestKernel({
    inline: [streams],
    environment: { MAX_EVENT_STREAMS_PER_USER: '3' }
  })
  t.teardown(() => k.close())
  const open = async (client: TestClient): Promise<IncomingMessage> => await client.open('/api/streams/own')
  const session = await k.as.session()
  const token = await k.as.token('read')
  const other = await k.as.session('other')
  const first = await open(session)
  const more = [await open(session), await open(token)]
  t.same(
    [first, ...more].map(({ statusCode }) => statusCode),
    [200, 200, 200]
  )
  for (const client of [session, token]) {
    const refused = await open(client)
    t.equal(refused.statusCode, 429)
    t.match(refused.headers['content-type'], /^application\/json/)
    t.match(JSON.parse(await text(refused)), {
      code: 'E_EVENT_STREAMS',
      error: 'you have 3 event streams open, which is as many as a user may have at once: close one first'
    })
  }
  await until(() => ended === given - 3, 'what was refused is told to end, if it had begun')
  t.equal((await open(other)).statusCode, 200)
  for (let n = 0; n < 5; n++)
    t.equal(
      (await k.as.anonymous().open('/api/streams/open')).statusCode,
      200,
      'anonymous streams are not counted'
    )
  const before = ended
  first.destroy()
  await until(() => ended === before + 1, 'the first one has ended')
  t.equal((await open(token)).statusCode, 200)
  t.equal((await open(session)).statusCode, 429)
})

test('a HEAD of an event stream is answered to its end, and the connection serves what comes next', async t => {
  const k = await createTestKernel({ inline: [streams] })
  t.teardown(() => k.close())
  const before = given
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(k.url).port) })
  t.teardown(() => socket.destroy())
  let answers = ''
  socket.setEncoding('utf8').on('data', (piece: string) => {
    answers += piece
  })
  const head = (method: string, path: string) => `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  socket.write(head('HEAD', '/api/streams/open') + head('GET', '/api/version'))
  await until(() => answers.includes('"version"'), 'the second answer')
  t.match(answers, /^HTTP\/1\.1 200 OK\r\n[\s\S]*content-type: text\/event-stream\r\n/)
  t.notMatch(answers, 'data:')
  t.equal(given, before, 'its source has not begun')
})
