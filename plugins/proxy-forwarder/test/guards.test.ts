import { EventEmitter } from 'node:events'
import { hashSync } from 'bcryptjs'
import { BcryptThread, PasswordChecks, readBasicCredentials, TokenBuckets } from 'busbar/sdk/http1'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { RateLimits, sizeOf } from '../rate-limits.js'
import type { Visit } from '../visit.js'

const visitOf = (address: string, headers: Record<string, string> = {}): Visit => ({
  path: '/',
  address,
  request: { headers, socket: Object.assign(new EventEmitter(), { destroyed: false }) } as never
})
const basic = (pair: string): { authorization: string } => ({
  authorization: `Basic ${Buffer.from(pair).toString('base64')}`
})
const wanted = { type: 'basic_auth', username: 'ann', hashedPassword: 'hash' } as const

test('credentials are read up to the first colon, and nothing else is', async t => {
  const read = (text: string) => readBasicCredentials(basic(text).authorization)
  t.same(read('ann:a:b'), { username: 'ann', password: 'a:b' })
  t.same(read(':'), { username: '', password: '' })
  t.equal(read('ann'), undefined)
  t.equal(readBasicCredentials('Bearer x'), undefined)
  t.equal(readBasicCredentials(undefined), undefined)
  t.match(readBasicCredentials(`bAsIc ${Buffer.from('a:b').toString('base64')}`), { username: 'a' })
})

test('a pair of name and password is verified once, and for all who ask meanwhile', async t => {
  const verified: string[] = []
  const checks = new PasswordChecks(
    () => 0,
    async password => {
      verified.push(password)
      return password === 'right'
    }
  )
  const check = checks.check('route', wanted)
  const ask = async (pair: string, address = '192.0.2.1') => await check(visitOf(address, basic(pair)))
  const answers = await Promise.all([ask('ann:right'), ask('ann:right'), ask('ann:right')])
  t.same(answers, [undefined, undefined, undefined])
  t.match(await ask('ann:wrong'), { status: 401 })
  t.match(await ask('ann:wrong'), { status: 401 })
  t.match(await ask('bob:right'), { status: 401 }, 'the name counts')
  t.same(verified, ['right', 'wrong', 'right'])
  const other = checks.check('route', { ...wanted, hashedPassword: 'other' })
  await other(visitOf('192.0.2.1', basic('ann:right')))
  t.equal(verified.length, 4, 'what was right for another hash is not remembered for this one')
})

test('a client has so much verified, and what is known already costs it nothing', async t => {
  let now = 0
  const checks = new PasswordChecks(
    () => now,
    async password => password === 'right'
  )
  const check = checks.check('route', wanted)
  const ask = async (pair: string, address = '192.0.2.1') => await check(visitOf(address, basic(pair)))
  t.equal(await ask('ann:right'), undefined)
  for (let guess = 1; guess <= 9; guess += 1) t.match(await ask(`ann:${guess}`), { status: 401 })
  t.match(await ask('ann:10'), { status: 429, headers: { 'Retry-After': '2' } })
  t.equal(await ask('ann:right'), undefined)
  t.match(await ask('ann:12', '192.0.2.2'), { status: 401 }, 'another client has its own')
  now += 2000
  t.match(await ask('ann:10'), { status: 401 })
  t.match(await ask('ann:11'), { status: 429 })
})

test('one password is verified at a time, routes take turns, and who has gone is left out', async t => {
  const running: Array<() => void> = []
  const verified: string[] = []
  const checks = new PasswordChecks(
    () => 0,
    async password => {
      verified.push(password)
      await new Promise<void>(resolve => running.push(resolve))
      return true
    }
  )
  let client = 0
  const visits: Visit[] = []
  const ask = (routeId: string, password: string) => {
    client += 1
    const visit = visitOf(`192.0.2.${client}`, basic(`ann:${password}`))
    visits.push(visit)
    return checks.check(routeId, { ...wanted, hashedPassword: routeId })(visit)
  }
  const first = Array.from({ length: 20 }, (_, index) => ask('a', `a${index}`))
  t.match(ask('a', 'more'), { status: 503 }, 'those who wait for one route are limited')
  const other = ask('b', 'b0')
  const gone = visits[1]?.request.socket as unknown as { destroyed: boolean }
  gone.destroyed = true
  for (let turn = 1; turn <= 20; turn += 1) {
    await until(() => running.length === 1, 'the next one to be verified')
    t.equal(verified.length, turn, 'one at a time')
    running.pop()?.()
  }
  await Promise.all([...first, other])
  t.same(
    verified.slice(0, 3),
    ['a0', 'b0', 'a2'],
    'the other route waited for one, and who had gone was left out'
  )
})

test('hashes are verified on another thread', async t => {
  const thread = new BcryptThread()
  t.teardown(async () => await thread.close())
  const hash = hashSync('right', 4)
  t.same(
    await Promise.all([
      thread.verify('right', hash),
      thread.verify('wrong', hash),
      thread.verify('x', 'none')
    ]),
    [true, false, false]
  )
  t.equal(await thread.verify('right', hash.replace('$2b$', '$2y$')), true, 'as htpasswd writes them')
  const slow = thread.verify('right', hashSync('right', 13))
  const ended = thread.close()
  await t.rejects(slow, /has ended/, 'what was under way is not taken for wrong')
  await ended
  t.equal(await thread.verify('right', hash), true, 'and it begins anew')
})

test('a bucket fills evenly, and no flood of keys costs another group its counts', async t => {
  const buckets = new TokenBuckets(100)
  const size = { capacity: 2, perMs: 0.001 }
  const take = (group: string, key: string, now = 0): number => buckets.take(group, key, size, now)
  t.same([take('a', 'x'), take('a', 'x'), take('a', 'x')], [0, 0, 1000])
  t.equal(take('a', 'x', 500), 500)
  t.equal(take('a', 'x', 1000), 0)
  t.ok(take('a', 'x', 1000) > 0)
  for (let key = 0; key < 1000; key += 1) take('flood', String(key), 1000)
  t.equal(buckets.total, 100)
  t.ok(take('a', 'x', 1000) > 0, 'it is still counted')
  buckets.forget('flood')
  t.equal(buckets.total, 1)
})

test('a limit counts by address, header or for all, and begins anew only when it is changed', async t => {
  const clock = testClock()
  const limits = new RateLimits(() => clock.elapsed())
  const limit = { type: 'rate_limit', rate: '1/m' } as const
  const status = (check: ReturnType<RateLimits['check']>, address: string, headers = {}) =>
    check(visitOf(address, headers))?.status
  const byAddress = limits.check('a', limit)
  t.equal(status(byAddress, '2001:db8::1'), undefined)
  t.equal(status(byAddress, '2001:db8::2'), 429, 'a /64 is one client')
  t.equal(status(byAddress, '192.0.2.1'), undefined)
  t.match(byAddress(visitOf('192.0.2.1')), { headers: { 'Retry-After': '60' } })
  t.equal(status(limits.check('a', limit), '192.0.2.1'), 429, 'the same limit of a new table')
  t.equal(status(limits.check('a', { ...limit, burst: 1 }), '192.0.2.1'), undefined, 'another one')
  const byKey = limits.check('b', { ...limit, key: '{http.request.header.X-Api-Key}' })
  t.equal(status(byKey, '192.0.2.1', { 'x-api-key': 'one' }), undefined)
  t.equal(status(byKey, '192.0.2.2', { 'x-api-key': 'one' }), 429)
  t.equal(status(byKey, '192.0.2.2', { 'x-api-key': 'x'.repeat(10_000) }), undefined)
  t.equal(status(byKey, '192.0.2.3'), undefined, 'without it, by address')
  t.equal(status(byKey, '192.0.2.3'), 429)
  const forAll = limits.check('c', { ...limit, key: 'all' })
  t.same([status(forAll, '192.0.2.1'), status(forAll, '192.0.2.2')], [undefined, 429])
  await clock.advance(60_000)
  t.equal(status(forAll, '192.0.2.1'), undefined)
  t.same(sizeOf({ type: 'rate_limit', rate: '600/h', burst: 5 }), { capacity: 605, perMs: 600 / 3_600_000 })
})
