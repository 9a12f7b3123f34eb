import { test } from 'tap'
import { candidateName } from '../rollout/container-name.js'

const deployment = '0123abcd-0000-4000-8000-000000000000'

test('a container that does not serve is named by its slug and its deployment', async t => {
  t.equal(candidateName('shop-web-1a2b3c4d', deployment), 'shop-web-1a2b3c4d-0123abcd')
})

test('a name is at most 63 characters long and keeps its last eight', async t => {
  const slug = `${'a'.repeat(53)}-${'b'.repeat(40)}-1a2b3c4d`
  t.equal(candidateName(slug, deployment), `${'a'.repeat(53)}-0123abcd`)
  t.equal(candidateName('x'.repeat(80), deployment).length, 63)
})
