import { type Test, test } from 'tap'
import type { ForwardingLimits } from '../../../sdk/http1/forwarding/route.js'
import { createSwitchMeter } from '../../../sdk/http1/forwarding/switch-meter.js'
import { openForwarder } from '../forwarder.js'
import { type Origin, speak, startOrigin } from './origin.js'

async function forwarding(
  t: Test,
  listener: Parameters<typeof startOrigin>[0],
  limits: Partial<ForwardingLimits> = {}
) {
  const origin: Origin = await startOrigin(listener)
  const forwarder = await openForwarder({ host: '127.0.0.1', port: 0 }, origin.target, limits)
  t.teardown(async () => {
    await forwarder.close()
    await origin.close()
  })
  return { origin, port: forwarder.port }
}
const post = (length: number, ...headers: readonly string[]): string =>
  ['POST / HTTP/1.1', 'Host: a', `Content-Length: ${length}`, ...headers, '', ''].join('\r\n')

test('a body that arrives slowly and steadily is waited for, however long it takes in all', async t => {
  const { port } = await forwarding(
    t,
    (incoming, response) => {
      let bytes = 0
      incoming.on('data', chunk => {
        bytes += chunk.length
      })
      incoming.on('end', () => response.end(`got ${bytes}`))
    },
    { answerTimeoutMs: 2_000 }
  )
  const pieces = 150
  const { said } = await speak(port, post(pieces, 'Connection: close'), {
    more: Array.from({ length: pieces }, () => 'x'),
    silenceMs: 10_000
  })
  t.match(said, /^HTTP\/1\.1 200 [\s\S]*got 150/)
})

test('where a body is not on its way, who is waited for is the container', async t => {
  const { origin, port } = await forwarding(t, incoming => incoming.pause(), {
    answerTimeoutMs: 500,
    lingerMs: 200
  })
  origin.server.on('checkContinue', () => {})
  for (const [what, bytes] of [
    ['it has all of the body', `${post(5)}hello`],
    ['it takes nothing of the body', Buffer.concat([Buffer.from(post(2 ** 26)), Buffer.alloc(2 ** 25)])],
    ['it has not asked for the body', post(5, 'Expect: 100-continue')]
  ] as const)
    t.match((await speak(port, bytes, { silenceMs: 10_000 })).said, /^HTTP\/1\.1 504 /, what)
  t.match((await speak(port, `${post(5)}he`, { silenceMs: 10_000 })).said, /^HTTP\/1\.1 408 /)
})

test('an answer without a `continue` ends the connection: its body may never come', async t => {
  const { origin, port } = await forwarding(t, () => {})
  origin.server.on('checkContinue', (_, response) => response.end('without it'))
  const { said, isClosed } = await speak(port, post(5, 'Expect: 100-continue'), { silenceMs: 10_000 })
  t.match(said, /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*without it/i)
  t.ok(isClosed)
})

test('a gap lasts from the last answer, or from the first who waits, to the next answer or the end of the watch', async t => {
  let now = 0
  const meter = createSwitchMeter(() => now)
  const open = meter.watch()
  meter.began()
  now = 40
  meter.began()
  now = 70
  t.same(open.end(), { served: 0, failed: 0, longestGapMs: 70 }, 'nobody has been answered yet')

  const answered = meter.watch()
  now = 100
  meter.began()
  now = 110
  meter.answered()
  now = 125
  meter.answered()
  t.same(
    answered.end(),
    { served: 2, failed: 0, longestGapMs: 40 },
    'who comes later begins no gap of their own'
  )
})
