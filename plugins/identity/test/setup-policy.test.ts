import { test } from 'tap'
import { isLocalRequest, setupPolicyOf } from '../users/setup-policy.js'

test('a request is local by one of the names of this machine, and by no proxy: both', async t => {
  for (const host of [
    'localhost',
    'LOCALHOST:8080',
    'x.localhost:1',
    '127.0.0.1',
    '127.9.9.9:80',
    '[::1]:8080'
  ])
    t.equal(isLocalRequest({ host }), true, host)
  for (const host of [
    '',
    'example.com',
    'localhost.example.com',
    '127.0.0.1.example.com',
    '10.0.0.1',
    'a.b.localhost'
  ])
    t.equal(isLocalRequest({ host }), false, host)
  for (const header of ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'])
    t.equal(isLocalRequest({ host: 'localhost', [header]: 'x' }), false, header)
  t.equal(isLocalRequest({}), false)
})

test('a platform that the network reaches asks for a code', async t => {
  const alone = { loopbackOnly: true, publicUrl: undefined, behindProxy: false }
  t.same(setupPolicyOf(undefined, alone), { kind: 'local' })
  t.same(setupPolicyOf('off', { ...alone, loopbackOnly: false }), { kind: 'open' })
  t.same(setupPolicyOf('a code of mine', alone), { kind: 'code', given: 'a code of mine' })
  for (const published of [
    { loopbackOnly: false },
    { behindProxy: true },
    { publicUrl: 'https://busbar.example.com' }
  ])
    t.same(setupPolicyOf(undefined, { ...alone, ...published }), { kind: 'code', given: undefined })
  t.same(setupPolicyOf(undefined, { ...alone, publicUrl: 'http://localhost:8080' }), { kind: 'local' })
})
