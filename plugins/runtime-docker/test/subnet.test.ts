import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { parseRoutes } from '../host-ranges.js'
import { networkName } from '../project-network.js'
import { allocateSubnet, parsePools, parseRange } from '../subnet.js'

const range = (text: string) =>
  parseRange(text) ??
  (() => {
    throw new Error(text)
  })()

test('subnets are handed out from the lowest, around everything that is in use', t => {
  const pool = [range('10.201.0.0/24')]
  t.equal(allocateSubnet(pool, []), '10.201.0.0/26')
  t.equal(allocateSubnet(pool, [range('10.201.0.0/26')]), '10.201.0.64/26')
  t.equal(
    allocateSubnet(pool, [range('10.201.0.128/26'), range('10.201.0.0/26')]),
    '10.201.0.64/26',
    'a gap is filled'
  )
  t.equal(
    allocateSubnet(pool, [range('10.201.0.0/25')]),
    '10.201.0.128/26',
    'a larger foreign network is passed over'
  )
  t.equal(allocateSubnet(pool, [range('10.201.0.70/32')]), '10.201.0.0/26', 'a small one only where it lies')
  t.equal(allocateSubnet(pool, [range('10.201.0.5/32'), range('10.201.0.64/30')]), '10.201.0.128/26')
  t.equal(allocateSubnet(pool, [range('10.0.0.0/8')]), undefined)
  t.equal(
    allocateSubnet([range('10.201.0.0/26'), range('10.202.0.0/26')], [range('10.201.0.0/26')]),
    '10.202.0.0/26',
    'the next pool follows'
  )
  t.equal(
    allocateSubnet([range('255.255.255.0/24')], [range('255.255.255.0/24')]),
    undefined,
    'the end of all addresses'
  )
  t.end()
})

test('networks of other sizes share the range without a gap that is too small for one', t => {
  const pool = [range('10.201.0.0/24')]
  t.equal(allocateSubnet(pool, [range('10.201.0.0/26')], 28), '10.201.0.64/28')
  t.equal(allocateSubnet(pool, [range('10.201.0.0/28'), range('10.201.0.16/28')], 28), '10.201.0.32/28')
  t.equal(allocateSubnet(pool, [range('10.201.0.0/28')]), '10.201.0.64/26')
  t.equal(allocateSubnet(pool, [range('10.201.0.0/25'), range('10.201.0.128/26')], 28), '10.201.0.192/28')
  t.end()
})

test('a /16 holds exactly 1024 project networks', t => {
  const used = []
  for (let count = 0; ; count++) {
    const subnet = allocateSubnet([range('10.201.0.0/16')], used)
    if (subnet === undefined) {
      t.equal(count, 1024)
      break
    }
    used.push(range(subnet))
  }
  t.end()
})

test('BUSBAR_SUBNETS is a list of ranges of /26 or larger', t => {
  t.equal(parsePools('10.1.0.0/16, 10.2.0.0/16')?.ranges.length, 2)
  for (const wrong of [
    '',
    '10.1.0.0',
    '10.1.0.0/27',
    '10.1.0.256/16',
    '10.1.0.0/33',
    'fd00::/8',
    '10.1.0.0/16,,10.2.0.0/16'
  ]) {
    t.equal(parsePools(wrong), undefined, JSON.stringify(wrong))
  }
  t.end()
})

test('network names keep to 63 characters and stay apart', t => {
  const [id, other] = [randomUUID(), randomUUID()]
  t.equal(networkName({ id, slug: 'shop' }), 'busbar-shop')
  const long = networkName({ id, slug: 'x'.repeat(80) })
  t.equal(long.length, 63)
  t.ok(long.endsWith(`-${id.slice(0, 8)}`))
  t.not(long, networkName({ id: other, slug: 'x'.repeat(80) }))
  t.equal(networkName({ id, slug: 'a b/c' }), `busbar-a-b-c-${id.slice(0, 8)}`)
  t.end()
})

test('the routes of the machine are read from every table of the kernel, but for default ones', t => {
  const table = [
    'Id 52:',
    '  +-- 0.0.0.0/0 2 0 2',
    '     |-- 0.0.0.0',
    '        /0 universe UNICAST',
    '        /1 universe UNICAST',
    '     |-- 10.0.0.0',
    '        /8 universe UNICAST',
    'Main:',
    '  +-- 0.0.0.0/0 3 0 4',
    '     |-- 0.0.0.0',
    '        /0 universe UNICAST',
    '     +-- 10.201.0.0/17 2 0 2',
    '        |-- 10.201.0.64',
    '           /26 link UNICAST',
    '           /32 link BROADCAST',
    '        |-- 10.201.128.0',
    '           /24 universe BLACKHOLE',
    '        |-- 128.0.0.0',
    '           /1 universe UNICAST',
    ''
  ].join('\n')
  t.same(parseRoutes(table), [
    { ...range('10.0.0.0/8'), name: 'the route 10.0.0.0/8 (table 52)' },
    { ...range('10.201.0.64/26'), name: 'the route 10.201.0.64/26 (main)' },
    { ...range('10.201.128.0/24'), name: 'the route 10.201.128.0/24 (main)' }
  ])
  t.same(
    parseRoutes('not a table\nat all\n|-- 1.2.3\n/24 universe UNICAST\n|-- 1.2.3.4\n/99 universe UNICAST'),
    []
  )
  t.end()
})
