import { type AddressInfo, createServer } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { collectAgainAndAgain } from '../../../test/lab/garbage.js'
import { askHttp } from '../health/http-check.js'

test('a check that is never answered ends, whatever the garbage collector does meanwhile', async t => {
  const silent = createServer(socket => {
    t.teardown(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  t.teardown(() => silent.close())
  await until(() => silent.listening, 'the server listens')
  const { port } = silent.address() as AddressInfo
  t.teardown(collectAgainAndAgain())

  let said: unknown
  void askHttp(
    'container',
    { path: '/health', expectStatus: 0, port },
    {
      runtime: { dial: async () => ({ host: '127.0.0.1', port }) },
      clock: systemClock(),
      signal: new AbortController().signal
    }
  ).then(result => {
    said = result
  })
  t.match(await until(() => said, 'the check ends'), {
    isHealthy: false,
    isAnswered: false,
    saw: 'had no answer within 5 s'
  })
})
