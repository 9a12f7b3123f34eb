import { test } from 'tap'
import { isLoopback, readSettings } from '../../core/config/environment.js'

test('without any variable the platform has its defaults', t => {
  const settings = readSettings({})
  t.match(settings, {
    host: '127.0.0.1',
    port: 8080,
    databaseUrl: undefined,
    role: 'all',
    corsOrigins: [],
    trustedProxies: undefined,
    secureCookies: false,
    transportSecurity: false,
    maxSocketsPerUser: 20,
    maxEventStreamsPerUser: 50,
    maxConnections: 4096,
    maxConnectionsPerAddress: 500,
    logLevel: 'info',
    logFormat: 'console',
    pluginFolders: [],
    publicUrl: 'http://localhost:8080',
    behindProxy: false
  })
  t.match(settings.directory, /\/\.busbar$/)
  t.end()
})

test('numbers are taken up to their bounds, and not beyond', t => {
  const bounds = [
    ['PORT', 'port', 0, 65_535],
    ['MAX_WEBSOCKET_CONNS_PER_USER', 'maxSocketsPerUser', 1, 10_000],
    ['MAX_EVENT_STREAMS_PER_USER', 'maxEventStreamsPerUser', 1, 10_000],
    ['MAX_CONNECTIONS', 'maxConnections', 1, 1_000_000],
    ['MAX_CONNECTIONS_PER_ADDRESS', 'maxConnectionsPerAddress', 1, 1_000_000]
  ] as const
  for (const [name, field, least, most] of bounds) {
    for (const value of [least, most]) t.equal(readSettings({ [name]: String(value) })[field], value, name)
    for (const value of [least - 1, most + 1, 'x', '1.5'])
      t.throws(() => readSettings({ [name]: String(value) }), new RegExp(`${name} is`), `${name}=${value}`)
  }
  t.end()
})

test('choices and lists are read, and an unknown choice is refused by its name', t => {
  const settings = readSettings({
    BUSBAR_ROLE: 'worker',
    SECURE_COOKIES: 'true',
    TLS_ENABLED: 'true',
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'warn',
    CORS_ORIGINS: 'https://App.example, ,https://b.example',
    BUSBAR_PLUGINS: '/a,/b'
  })
  t.match(settings, {
    role: 'worker',
    secureCookies: true,
    transportSecurity: true,
    logFormat: 'json',
    logLevel: 'warn',
    corsOrigins: ['https://app.example', 'https://b.example'],
    pluginFolders: ['/a', '/b']
  })
  t.equal(settings.corsOrigins.length, 2)
  for (const name of ['BUSBAR_ROLE', 'SECURE_COOKIES', 'TLS_ENABLED', 'LOG_LEVEL', 'LOG_FORMAT'])
    t.throws(() => readSettings({ [name]: 'other' }), new RegExp(name))
  t.end()
})

test('proxies are addresses and ranges whose prefix fits', t => {
  const { trustedProxies: proxies, behindProxy } = readSettings({
    TRUST_PROXY: '10.0.0.1, 10.1.0.0/16, ::1, fd00::/8, 192.168.0.1/32, 2001:db8::1/128'
  })
  t.equal(behindProxy, true)
  const trusts = (address: string): boolean =>
    proxies?.check(address, address.includes(':') ? 'ipv6' : 'ipv4') === true
  for (const address of ['10.0.0.1', '10.1.9.9', '::1', 'fd12::1', '192.168.0.1', '2001:db8::1'])
    t.equal(trusts(address), true, address)
  for (const address of ['10.0.0.2', '10.2.0.1', '::2', 'fe80::1']) t.equal(trusts(address), false, address)
  t.equal(
    readSettings({ TRUST_PROXY: '0.0.0.0/0' }).trustedProxies?.check('8.8.8.8'),
    true,
    'a prefix of 0 is everybody'
  )
  for (const entry of ['proxy', '10.0.0.0/33', '10.0.0.0/x', 'fd00::/129', '10.0.0.0/'])
    t.throws(() => readSettings({ TRUST_PROXY: entry }), /TRUST_PROXY holds/, entry)
  t.end()
})

test('the public address is that of the setting, or of a host that only this machine reaches', t => {
  t.equal(readSettings({ PUBLIC_BASE_URL: 'https://busbar.example/' }).publicUrl, 'https://busbar.example')
  t.equal(readSettings({ PUBLIC_BASE_URL: 'https://a.example/b//' }).publicUrl, 'https://a.example/b')
  t.equal(readSettings({ HOST: '::1', PORT: '81' }).publicUrl, 'http://localhost:81')
  t.equal(readSettings({ HOST: '0.0.0.0' }).publicUrl, undefined)
  for (const url of ['busbar.example', 'ftp://a.example', 'https://a.example/?a', 'https://a.example/#a'])
    t.throws(() => readSettings({ PUBLIC_BASE_URL: url }), /PUBLIC_BASE_URL is/, url)
  for (const host of ['localhost', '::1', '127.0.0.1', '127.9.9.9']) t.equal(isLoopback(host), true, host)
  for (const host of ['0.0.0.0', '10.127.0.1', 'localhost.example', '128.0.0.1'])
    t.equal(isLoopback(host), false, host)
  t.end()
})
