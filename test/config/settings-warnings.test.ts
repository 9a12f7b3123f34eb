import { BlockList } from 'node:net'
import { test } from 'tap'
import { readSettings } from '../../core/config/environment.js'
import { settingsWarnings } from '../../core/config/settings-warnings.js'

const none: ReadonlyMap<string, Buffer> = new Map()
const codes = (environment: Record<string, string>, keys = none): string[] =>
  settingsWarnings({ ...readSettings(environment), keys }).map(({ code }) => code)
const https = { HOST: '0.0.0.0', PUBLIC_BASE_URL: 'https://busbar.example.com', TRUST_PROXY: '10.0.0.5' }

test('a platform that its own machine alone reaches is warned of nothing', t => {
  t.same(codes({}), [])
  t.same(codes({ HOST: '::1' }), [])
  t.same(codes({ HOST: '127.0.0.9', PUBLIC_BASE_URL: 'http://localhost:9000' }), [])
  t.end()
})

test('a platform that others reach is to know its address, and to be reached by HTTPS', t => {
  t.same(codes({ HOST: '0.0.0.0' }), ['no_public_url', 'http_only'])
  t.same(codes({ HOST: '0.0.0.0', PUBLIC_BASE_URL: 'http://localhost:8080' }), ['no_public_url', 'http_only'])
  t.same(codes({ HOST: '0.0.0.0', PUBLIC_BASE_URL: 'http://busbar.example.com' }), ['http_only'])
  t.same(codes({ TRUST_PROXY: '127.0.0.1' }), ['no_public_url'], 'what is in front may speak HTTPS')
  t.same(codes({ PUBLIC_BASE_URL: 'http://10.0.0.3' }), ['http_only'], 'somebody leads others to it')
  t.end()
})

test('behind HTTPS cookies are to be for HTTPS alone, and browsers to be told of it', t => {
  t.same(codes(https), ['insecure_cookies', 'no_hsts'])
  t.same(codes({ ...https, SECURE_COOKIES: 'true' }), ['no_hsts'])
  t.same(codes({ ...https, SECURE_COOKIES: 'true', TLS_ENABLED: 'true' }), [])
  t.end()
})

test('a list of proxies that holds every address trusts nobody in particular', t => {
  const secure = { ...https, SECURE_COOKIES: 'true', TLS_ENABLED: 'true' }
  for (const TRUST_PROXY of ['0.0.0.0/0', '0.0.0.0/1,128.0.0.0/1', '::/0'])
    t.same(codes({ ...secure, TRUST_PROXY }), ['trusts_every_proxy'], TRUST_PROXY)
  for (const TRUST_PROXY of ['10.0.0.0/8', '203.0.113.0/24', '2001:db8::/32'])
    t.same(codes({ ...secure, TRUST_PROXY }), [], TRUST_PROXY)
  t.same(settingsWarnings({ ...readSettings({}), trustedProxies: new BlockList(), keys: none }), [])
  t.end()
})

test('a password of the database that everybody tries first is named, and no other', t => {
  const database = (DATABASE_URL: string) => codes({ DATABASE_URL })
  for (const password of ['postgres', 'Password', 'busbar', '%62usbar', 'owner'])
    t.same(database(`postgres://owner:${password}@db/busbar`), ['default_database_password'], password)
  for (const url of [
    'postgres://owner:3f0c9a527d5e@db/busbar',
    'postgres://owner@db/busbar',
    'not a url',
    'postgres://a:%zz@db/x'
  ])
    t.same(database(url), [], url)
  t.notMatch(
    JSON.stringify(
      settingsWarnings({ ...readSettings({ DATABASE_URL: 'postgres://owner:changeme@db/x' }), keys: none })
    ),
    'changeme'
  )
  t.end()
})

test('an encryption key that can be guessed is named by its id', t => {
  const warned = (hex: string): string[] => codes({}, new Map([['v1', Buffer.from(hex, 'hex')]]))
  const counting = Array.from({ length: 32 }, (_, at) => at.toString(16).padStart(2, '0')).join('')
  for (const hex of ['0'.repeat(64), '0123456789abcdef'.repeat(4), 'deadbeef'.repeat(8), counting])
    t.same(warned(hex), ['weak_encryption_key'], hex)
  t.same(warned('9f2c4e8071b3d5a6f8e0c2b4967a1d3e5f708192a3b4c5d6e7f8091a2b3c4d5e'), [])
  t.end()
})

test('each warning has a message without a full stop, and a remedy', t => {
  const all = settingsWarnings({
    ...readSettings({ HOST: '0.0.0.0', TRUST_PROXY: '0.0.0.0/0', DATABASE_URL: 'postgres://a:a@db/a' }),
    keys: new Map([['v1', Buffer.alloc(32)]])
  })
  t.ok(all.length >= 4)
  for (const { code, message, remedy } of all) {
    t.match(code, /^[a-z_]+$/)
    t.match(message, /[^.]$/, code)
    t.ok(remedy.length > 20, code)
  }
  t.end()
})
