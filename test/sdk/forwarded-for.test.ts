import { test } from 'tap'
import { addressesIn, originOf } from '../../sdk/http1/forwarded-for.js'

const isTrusted = addressesIn(['10.0.0.0/8', '::1', '127.0.0.1']) ?? (() => false)

test('ranges are addresses with as many bits as they have', async t => {
  t.ok(isTrusted('10.255.0.1'))
  t.ok(isTrusted('::ffff:10.0.0.1'), 'as a socket for both shows it')
  t.notOk(isTrusted('11.0.0.1'))
  t.notOk(isTrusted(''))
  for (const range of ['10.0.0.0/33', '10.0.0', 'x', '::1/129', '10.0.0.0/8/8', 'fe80::1%eth0', '10.0.0.0/'])
    t.equal(addressesIn([range]), undefined, range)
})

test('the client is the first from the right that no believed proxy is', async t => {
  const read = (peer: string, header: string | undefined) => {
    const { address, forwardedFor } = originOf(peer, header, isTrusted)
    return `${address} | ${forwardedFor}`
  }
  for (const [peer, header, expected] of [
    ['192.0.2.1', '1.2.3.4', '192.0.2.1 | 192.0.2.1'],
    ['10.0.0.1', undefined, '10.0.0.1 | 10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1 | 10.0.0.1'],
    ['10.0.0.1', '1.2.3.4', '1.2.3.4 | 1.2.3.4, 10.0.0.1'],
    ['10.0.0.1', '6.6.6.6, 1.2.3.4,10.0.0.2', '1.2.3.4 | 1.2.3.4, 10.0.0.2, 10.0.0.1'],
    ['::ffff:10.0.0.1', '::ffff:1.2.3.4', '1.2.3.4 | 1.2.3.4, 10.0.0.1'],
    ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3 | 10.0.0.3, 10.0.0.2, 10.0.0.1'],
    ['10.0.0.1', '1.2.3.4, unknown, 10.0.0.2', '10.0.0.2 | 10.0.0.2, 10.0.0.1'],
    ['10.0.0.1', '1.2.3.4:4711', '1.2.3.4 | 1.2.3.4, 10.0.0.1'],
    ['::1', '[2001:db8::7]:80', '2001:db8::7 | 2001:db8::7, ::1'],
    ['10.0.0.1', '1.2.3.4, ', '10.0.0.1 | 10.0.0.1']
  ] as const)
    t.equal(read(peer, header), expected, `${peer} with ${header}`)
})
