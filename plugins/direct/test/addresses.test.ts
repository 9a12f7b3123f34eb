import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createTestKernel, settingsFrom, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { readSettings } from '../../../core/config/environment.js'
import { directAddresses } from '../api.js'
import { directSettingsOf, settings, urlOf } from '../settings.js'
import { createApplication } from './applications.js'
import { startOrigin } from './origin.js'

// Without an engine: an address must not need one.
const environment = { BUSBAR_DIRECT_PORTS: '27000-27050', DOCKER_HOST: 'unix:///nonexistent.sock' }
const body = async (url: string): Promise<string> => await (await fetch(url)).text()

const application = async (k: TestKernel): Promise<string> => (await createApplication(k)).id

test('an address keeps its port and its target across restarts of the platform', async t => {
  const first = await createTestKernel({ environment })
  const origin = await startOrigin((_, response) => response.end('here'))
  const id = await application(first)
  const addresses = first.service(directAddresses)
  const { url } = await addresses.open(id)
  t.match(url, /^http:\/\/127\.0\.0\.2:270\d\d$/)
  t.equal((await fetch(url)).status, 503)
  const target = { ...origin.target, deploymentId: randomUUID() }
  await (await addresses.switchTo(id, target)).drain(100)
  t.equal(await body(url), 'here')
  t.equal((await addresses.open(id)).url, url, 'opening again changes nothing')
  await first.stop()
  await t.rejects(fetch(url))

  const second = await createTestKernel({ environment, state: first.state })
  t.teardown(async () => {
    await second.close()
    await origin.close()
  })
  t.equal(await body(url), 'here')
  await second.service(directAddresses).retarget(id, null)
  t.match(await fetch(url), { status: 503 })
  await second.service(directAddresses).retarget(id, target)
  t.equal(await body(url), 'here')
  await second.service(directAddresses).close(id)
  await t.rejects(fetch(url))
  await t.rejects(second.service(directAddresses).switchTo(id, target), { code: 'E_DIRECT_NOT_OPEN' })
})

test('a port that another program holds is tried again until it is free', async t => {
  const first = await createTestKernel({ environment })
  const origin = await startOrigin((_, response) => response.end('here'))
  const id = await application(first)
  const { url } = await first.service(directAddresses).open(id)
  await first.service(directAddresses).switchTo(id, { ...origin.target, deploymentId: randomUUID() })
  await first.stop()

  const squatter = createServer((_, response) => response.end('squatter'))
  await new Promise<void>(resolve => squatter.listen(Number(new URL(url).port), '127.0.0.2', resolve))
  const logged: string[] = []
  const second = await createTestKernel({ environment, state: first.state, onLog: line => logged.push(line) })
  t.teardown(async () => {
    await second.close()
    await origin.close()
  })
  t.equal(await body(url), 'squatter')
  t.ok(
    logged.some(line => line.includes('cannot listen for a direct address') && line.includes('EADDRINUSE')),
    'the reason is logged'
  )
  await t.rejects(second.service(directAddresses).open(id), {
    code: 'E_DIRECT_PORT_UNAVAILABLE',
    message: /in use/
  })
  squatter.closeAllConnections()
  await new Promise(resolve => squatter.close(resolve))
  await until(async () => (await body(url).catch(() => '')) === 'here', 'the port is taken again')
  t.equal(await body(url), 'here')
})

test('an address names one host and listens on another, and only ports that are forwarded are taken', async t => {
  const k = await createTestKernel({
    environment: {
      ...environment,
      BUSBAR_DIRECT_HOST: 'apps.localhost',
      BUSBAR_DIRECT_BIND: '127.0.0.4',
      BUSBAR_DIRECT_PORTS: '27060-27061'
    }
  })
  const origin = await startOrigin((_, response) => response.end('here'))
  t.teardown(async () => {
    await k.close()
    await origin.close()
  })
  const addresses = k.service(directAddresses)
  const [one, two, three] = [await application(k), await application(k), await application(k)]
  const { url } = await addresses.open(one)
  t.match(url, /^http:\/\/apps\.localhost:2706[01]$/)
  await addresses.retarget(one, { ...origin.target, deploymentId: randomUUID() })
  t.equal(await body(url.replace('apps.localhost', '127.0.0.4')), 'here')
  await t.rejects(fetch(url.replace('apps.localhost', '127.0.0.2')))
  await addresses.open(two)
  await t.rejects(addresses.open(three), {
    code: 'E_DIRECT_PORT_UNAVAILABLE',
    message: /no port of 27060-27061 is free.*BUSBAR_DIRECT_PORTS/
  })
})

test('ports are not shared', async t => {
  const k = await createTestKernel({ environment })
  t.teardown(() => k.close())
  const ids = await Promise.all([application(k), application(k), application(k)])
  const urls = await Promise.all(ids.map(async id => (await k.service(directAddresses).open(id)).url))
  t.equal(new Set(urls).size, 3)
})

/** What the plugin makes of these variables, on a platform that has them too. */
const readAll = (values: Record<string, string>) =>
  directSettingsOf(settingsFrom(settings, values), readSettings(values))

test('settings are read, and a mistake in them is named with its remedy', async t => {
  t.same(readAll({}), {
    host: '127.0.0.2',
    bind: '127.0.0.2',
    firstPort: 20000,
    lastPort: 24999,
    isRangeOnly: false
  })
  t.match(readAll({ BUSBAR_DIRECT_PORTS: '1000-1001', BUSBAR_DIRECT_HOST: '127.0.0.9' }), {
    host: '127.0.0.9',
    bind: '127.0.0.9',
    firstPort: 1000,
    lastPort: 1001
  })
  t.match(readAll({ BUSBAR_DIRECT_HOST: 'Apps.example.com', BUSBAR_DIRECT_BIND: '0.0.0.0' }), {
    host: 'apps.example.com',
    bind: '0.0.0.0',
    isRangeOnly: true
  })
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '0.0.0.0', '10.0.0.5']) {
    t.throws(
      () => readAll({ BUSBAR_DIRECT_HOST: host, HOST: '10.0.0.5' }),
      { message: /cookies ignore ports/ },
      host
    )
  }
  for (const host of ['Panel.example.com', '*.example.com'])
    t.throws(
      () =>
        readAll({
          BUSBAR_DIRECT_HOST: host,
          BUSBAR_DIRECT_BIND: '0.0.0.0',
          DASHBOARD_DOMAIN: 'panel.Example.com.'
        }),
      { message: /a browser asks for the platform/ },
      `${host}, where a proxy serves the platform as well`
    )
  t.throws(() => readAll({ BUSBAR_DIRECT_HOST: 'http://apps' }), { message: /without a port/ })
  t.throws(
    () => readAll({ BUSBAR_DIRECT_HOST: 'me.example.com', PUBLIC_BASE_URL: 'https://me.example.com/x' }),
    {
      message: /cookies ignore ports/
    }
  )
  for (const range of ['junk', '5-1', '0-10', '1-70000', '1000']) {
    t.throws(() => readAll({ BUSBAR_DIRECT_PORTS: range }), { message: /two ports from 1 to 65535/ }, range)
  }
  t.equal(urlOf('::1', 80), 'http://[::1]:80')
})

test('a pattern of hosts is read, with what to listen on, and is none that takes in the platform', async t => {
  const read = (host: string, more: Record<string, string> = { BUSBAR_DIRECT_BIND: '0.0.0.0' }) =>
    readAll({ BUSBAR_DIRECT_HOST: host, ...more })
  for (const host of ['*.apps.example.com', '*.Apps.Localhost', '*.localhost', `*.${'a'.repeat(63)}`])
    t.match(read(host), { host: host.toLowerCase(), bind: '0.0.0.0', isRangeOnly: true }, host)
  for (const host of ['*', '*apps.example.com', 'a.*.com', '**.example.com', 'apps.*', 'x*.example.com'])
    t.throws(() => read(host), { message: /the whole first label, like \*\.apps\.example\.com/ }, host)
  for (const host of [
    '*.',
    '*.*.example.com',
    '*.example.com.',
    '*.example..com',
    '*.example.com:80',
    '*.-a.com',
    '*.127.0.0.2',
    '*.a.0x7f',
    `*.${'a'.repeat(64)}`,
    `*.${'a.'.repeat(94)}aa`
  ])
    t.throws(() => read(host), { message: /the name of a domain without a port/ }, host)
  t.throws(() => read('*.apps.example.com', {}), {
    message: /set BUSBAR_DIRECT_BIND to one, like 0\.0\.0\.0/
  })
  for (const platform of ['me.apps.example.com', 'Apps.example.com', 'a.b.apps.example.com']) {
    const bound = { BUSBAR_DIRECT_BIND: '0.0.0.0' }
    const message = /could have that name, or set cookies for it/
    t.throws(() => read('*.apps.example.com', { ...bound, HOST: platform }), { message }, platform)
    const PUBLIC_BASE_URL = `https://${platform}:8443/x`
    t.throws(() => read('*.apps.example.com', { ...bound, PUBLIC_BASE_URL }), { message }, platform)
  }
  for (const platform of ['example.com', 'me.example.com', 'xapps.example.com', '0.0.0.0', ''])
    t.ok(read('*.apps.example.com', { BUSBAR_DIRECT_BIND: '0.0.0.0', HOST: platform }), platform)
})
