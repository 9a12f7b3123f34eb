import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { test } from 'tap'
import { driverContract, route, table } from '../../domains/test/driver-contract.js'
import { ForwarderDriver } from '../forwarder-driver.js'
import { RequestNotes } from '../request-notes.js'

const settings = { bind: '127.0.0.1', port: 0 }
const driverOf = (given: Partial<typeof settings> = {}): ForwarderDriver =>
  new ForwarderDriver(
    { ...settings, ...given },
    new RequestNotes({ get: () => undefined, whileAvailable: async () => {} })
  )

test('the built-in forwarder is a proxy driver', async t => {
  await driverContract(t, async t => {
    const driver = driverOf()
    t.teardown(async () => await driver.release())
    return driver
  })
})

test('a port that another program has is told, and taken when it is free', async t => {
  const other = createServer()
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as AddressInfo
  const driver = driverOf({ port })
  t.teardown(async () => await driver.release())
  const wanted = table(route({ hostname: 'www.example.com', applicationId: 'a' }))
  await t.rejects(driver.load(wanted), /BUSBAR_PROXY_PORT/)
  t.match(await driver.report('www.example.com'), { fault: /cannot listen/ })
  await new Promise(resolve => other.close(resolve))
  await driver.load(wanted)
  t.equal(driver.ports().http, port)
  t.match(await driver.report('www.example.com'), { fault: null })
})

test('a load that is under way when the plugin stops leaves no port open', async t => {
  const driver = driverOf()
  const loading = driver.load(table())
  await driver.stop()
  await loading
  t.equal(driver.ports().http, null)
  await driver.load(table())
  t.equal(driver.ports().http, null, 'and none is opened later')
})
