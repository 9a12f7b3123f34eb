import { type AddressInfo, createServer, type Socket } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { collectRepeatedly } from '../../../lab/garbage.js'
import { endlessInterimServer, interimServer, unaskedUpgrade } from '../../../lab/interim-answers.js'
import { askHttp } from '../health/http-check.js'

const ask = async (port: number) =>
  await askHttp(
    'container',
    { path: '/health', expectStatus: 0, port },
    {
      runtime: { dial: async () => ({ host: '127.0.0.1', port }) },
      clock: systemClock(),
      signal: new AbortController().signal
    }
  )

test('a check that is never answered ends, whatever the garbage collector does meanwhile', async t => {
  const silent = createServer(socket => {
    t.teardown(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  t.teardown(() => silent.close())
  await until(() => silent.listening, 'the server listens')
  const { port } = silent.address() as AddressInfo
  t.teardown(collectRepeatedly())

  let said: unknown
  void ask(port).then(result => {
    said = result
  })
  t.match(await until(() => said, 'the check ends'), {
    isHealthy: false,
    isAnswered: false,
    saw: 'had no answer within 5 s'
  })
})

test('who sends interim answers without end is unhealthy; a few are in the way of nothing', async t => {
  t.match(await ask(await endlessInterimServer(t)), {
    isHealthy: false,
    isAnswered: true,
    saw: 'sent interim answers (1xx) one after another and no final one'
  })
  const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
  t.match(await ask(await interimServer(t, 20, final)), { isHealthy: true, saw: 'answered 200' })
})

test('who answers with another protocol that was not requested is unhealthy', async t => {
  t.match(await ask(await interimServer(t, 0, unaskedUpgrade)), {
    isHealthy: false,
    isAnswered: true,
    saw: /another protocol that was not requested/
  })
})

const heads = {
  'with a length': 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n',
  'in chunks': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
}

/** Answers with what `send` writes. */
async function container(t: Test, send: (socket: Socket) => void): Promise<number> {
  const server = createServer(socket => {
    t.teardown(() => socket.destroy())
    socket.on('error', () => {}).once('data', () => send(socket))
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await until(() => server.listening, 'the server listens')
  return (server.address() as AddressInfo).port
}

for (const [how, head] of Object.entries(heads)) {
  test(`a body ${how} that is cut ends a check at once: its status has come`, async t => {
    const began = performance.now()
    for (const part of ['', how === 'in chunks' ? '20\r\nhalf a ch' : 'half a body'])
      t.match(await ask(await container(t, socket => socket.end(head + part))), {
        isHealthy: true,
        isAnswered: true,
        saw: 'answered 200'
      })
    t.ok(performance.now() - began < 4000)
  })

  test(`a body ${how} that trickles is no answer in time`, async t => {
    const port = await container(t, socket => {
      socket.write(head)
      const drops = setInterval(() => socket.write(how === 'in chunks' ? '1\r\nx\r\n' : 'x'), 100)
      socket.on('close', () => clearInterval(drops))
    })
    const began = performance.now()
    t.match(await ask(port), { isHealthy: false, saw: 'had no answer within 5 s' })
    const ms = performance.now() - began
    t.ok(ms < 8000, `${Math.round(ms)} ms`)
  })
}

test('a head that is cut, or trickles, is no answer', async t => {
  t.match(await ask(await container(t, socket => socket.end('HTTP/1.1 200 OK\r\nContent-'))), {
    isHealthy: false,
    isAnswered: false,
    saw: /^failed/
  })
  const port = await container(t, socket => {
    socket.write('HTTP/1.1 200 OK\r\nX-Slow: ')
    const drops = setInterval(() => socket.write('x'), 100)
    socket.on('close', () => clearInterval(drops))
  })
  const began = performance.now()
  t.match(await ask(port), { isHealthy: false, isAnswered: false, saw: 'had no answer within 5 s' })
  t.ok(performance.now() - began < 8000)
})
