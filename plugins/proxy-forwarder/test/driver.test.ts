import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import {
  driverContract,
  only,
  route,
  startContainer,
  table,
  visit
} from '../../domains/test/driver-contract.js'
import { guardContract } from '../../domains/test/guard-contract.js'
import { ForwarderDriver } from '../forwarder-driver.js'
import { RequestNotes } from '../request-notes.js'

const instance = { ownProxy: { header: 'x-busbar-proxy', value: 'secret' } }
function driverOn(t: Test, port = 0): ForwarderDriver {
  const driver = new ForwarderDriver({
    settings: { bind: '127.0.0.1', port },
    notes: new RequestNotes({ get: () => undefined, whileAvailable: async () => {} }),
    clock: testClock(),
    instance
  })
  t.teardown(async () => await driver.stop())
  return driver
}

test('the built-in forwarder is a proxy driver', async t => {
  const make = async (t: Test) => driverOn(t)
  await driverContract(t, make)
  await guardContract(t, make)
})

test('a port that another program has is told, and taken when it is free', async t => {
  const other = createServer()
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as AddressInfo
  const driver = driverOn(t, port)
  const wanted = table(route({ hostname: 'www.example.com', applicationId: 'a' }))
  await t.rejects(driver.load(wanted), /BUSBAR_PROXY_PORT/)
  t.match(await driver.report('www.example.com'), { fault: /cannot listen/ })
  await new Promise(resolve => other.close(resolve))
  await driver.load(wanted)
  t.equal(driver.ports().http, port)
  t.match(await driver.report('www.example.com'), { fault: null })
})

test('a load that is under way when the plugin stops leaves no port open', async t => {
  const driver = driverOn(t)
  const loading = driver.load(table())
  await driver.stop()
  await loading
  t.equal(driver.ports().http, null)
  await driver.load(table())
  t.equal(driver.ports().http, null, 'and none is opened later')
})

test('what the platform is shown reaches it alone, and what a client claims of its way reaches nobody', async t => {
  const driver = driverOn(t)
  const [application, upstream] = [await startContainer(t, 'a'), await startContainer(t, 'platform')]
  await driver.retarget('x', only(application))
  await driver.load({
    ...table(route({ hostname: 'www.example.com', applicationId: 'x' })),
    platform: { hostname: 'panel.example.com', forceHttps: false, tls: { mode: 'off' }, upstream },
    trustedProxies: ['127.0.0.1', '10.0.0.0/8']
  })
  const headers = { 'X-Forwarded-For': '192.0.2.1, 203.0.113.7, 10.0.0.1', 'X-Busbar-Proxy': 'guess' }
  const own = (await visit(driver, 'panel.example.com', '/', { headers })).seen.headers ?? {}
  t.equal(own['x-busbar-proxy'], 'secret')
  t.equal(own['x-forwarded-for'], '203.0.113.7, 10.0.0.1, 127.0.0.1')
  const other = (await visit(driver, 'www.example.com', '/', { headers })).seen.headers ?? {}
  t.not(other['x-busbar-proxy'], 'secret')
  t.equal(other['x-forwarded-for'], '203.0.113.7, 10.0.0.1, 127.0.0.1')
})

test('the platform is not served without the TLS that it is to have', async t => {
  const driver = driverOn(t)
  const upstream = await startContainer(t, 'platform')
  await driver.load({
    ...table(),
    platform: { hostname: 'panel.example.com', forceHttps: true, tls: { mode: 'automatic' }, upstream }
  })
  t.equal((await visit(driver, 'panel.example.com')).status, 503)
  t.match(await driver.report('panel.example.com'), { fault: /DASHBOARD_SSL_MODE=off/ })
})
