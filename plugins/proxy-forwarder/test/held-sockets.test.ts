import { test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { heldSockets } from '../../domains/test/held-sockets.js'
import { ForwarderDriver } from '../forwarder-driver.js'
import { RequestNotes } from '../request-notes.js'

test('a WebSocket through the forwarder stays open through switches and changes of other domains', async t => {
  t.setTimeout(0)
  const driver = new ForwarderDriver({
    settings: { bind: '127.0.0.1', port: 0 },
    notes: new RequestNotes({ get: () => undefined, whileAvailable: async () => {} }),
    clock: systemClock(),
    instance: { ownProxy: { header: 'x-busbar-proxy', value: 'secret' } }
  })
  t.teardown(async () => await driver.stop())
  await heldSockets(t, driver)
})
