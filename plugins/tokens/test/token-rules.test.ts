import { test } from 'tap'
import { readExpiry, readName, readScope } from '../token-rules.js'

test('several scopes collapse to the widest', async t => {
  t.equal(readScope(['read']), 'read')
  t.equal(readScope(['metrics', 'deploy', 'read']), 'deploy')
  t.equal(readScope(['write', 'write', 'metrics']), 'write')
  for (const none of [undefined, [], ['admin'], ['read', 'Read'], ['']])
    t.throws(() => readScope(none), { status: 400, message: 'select at least one valid scope' })
})

test('a token lives for one of six spans, or for ever', async t => {
  for (const days of [1, 7, 14, 30, 60, 90]) t.equal(readExpiry(days), days)
  t.equal(readExpiry(null), null)
  t.equal(readExpiry(undefined), null)
  for (const days of [0, -1, 2, 31, 365])
    t.throws(() => readExpiry(days), { status: 400, message: 'invalid expires_in_days' })
})

test('a name has something in it', async t => {
  t.equal(readName('  ci '), 'ci')
  t.throws(() => readName(' \t'), { status: 400, message: 'name must not be empty' })
})
