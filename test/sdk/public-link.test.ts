import { publicLink } from 'busbar/sdk'
import { test } from 'tap'
import { readSettings } from '../../core/config/environment.js'

const link = (environment: Record<string, string>, loopbackOnly = false): string | undefined =>
  publicLink(
    readSettings({ HOST: loopbackOnly ? '127.0.0.1' : '0.0.0.0', ...environment }),
    '/reset-password'
  )

test('a link lies below PUBLIC_BASE_URL', async t => {
  t.equal(
    link({ PUBLIC_BASE_URL: 'https://busbar.example.com' }),
    'https://busbar.example.com/reset-password'
  )
  t.equal(
    link({ PUBLIC_BASE_URL: 'https://busbar.example.com/' }),
    'https://busbar.example.com/reset-password'
  )
  t.equal(
    link({ PUBLIC_BASE_URL: 'http://example.com:8080/ops//' }),
    'http://example.com:8080/ops/reset-password'
  )
})

test('without it a platform knows its address only while it serves this machine alone', async t => {
  t.equal(link({}, true), 'http://localhost:8080/reset-password')
  t.equal(link({ PORT: '9000' }, true), 'http://localhost:9000/reset-password')
  t.equal(link({ PORT: '9000' }), undefined)
})

test('what is no address of the web is refused by name', async t => {
  for (const PUBLIC_BASE_URL of [
    'busbar.example.com',
    'javascript:alert(1)',
    'ftp://example.com',
    'https://example.com/?a=b',
    'https://example.com/#a'
  ]) {
    t.throws(() => link({ PUBLIC_BASE_URL }), { message: /^PUBLIC_BASE_URL is / }, PUBLIC_BASE_URL)
  }
})
