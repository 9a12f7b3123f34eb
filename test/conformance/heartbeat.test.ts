/** Pings, by the clock of the test kit: in earnest a client would be waited for through two of them. */
import { createTestKernel, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { LiveClient } from './live-client.js'

/** As it stands in `events.md`. */
export const claimed =
  'WebSocket ping: server pings every 30 seconds; a client that does not answer is closed as dead'

test(claimed, async t => {
  const clock = testClock()
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const { credential } = await k.as.session()
  // The time at which the platform pings is that of its start, and some has passed since.
  const lively = await LiveClient.open(k.url, credential)
  while (lively.pings === 0 && clock.now().getTime() < Date.UTC(2026, 0, 2)) {
    await clock.advance(1_000)
    await lively.drained()
  }
  const silent = await LiveClient.open(k.url, credential, { autoPong: false })
  await clock.advance(29_000)
  await lively.drained()
  t.equal(lively.pings, 1, 'not before')
  await clock.advance(1_000)
  await lively.drained()
  await silent.drained()
  t.same([lively.pings, silent.pings], [2, 1], 'every 30 seconds')
  await clock.advance(9_000)
  await silent.drained()
  t.equal(silent.end, undefined, 'it has ten seconds to answer')
  await clock.advance(1_000)
  t.equal((await silent.closed()).code, 1006, 'and is closed without a handshake')
  await clock.advance(50_000)
  await lively.drained()
  t.same([lively.pings, lively.end], [4, undefined], 'who answers stays')
  await lively.close()
})
