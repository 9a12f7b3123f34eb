import { type AddressInfo, createServer } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
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
