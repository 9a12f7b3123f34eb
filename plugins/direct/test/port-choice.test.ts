import { test } from 'tap'
import { anyPort, portsToTry } from '../port-choice.js'
import type { DirectSettings } from '../settings.js'

const settings = (firstPort: number, lastPort: number, isRangeOnly = false) =>
  ({ firstPort, lastPort, isRangeOnly }) as DirectSettings
const released = (...ports: number[]) => new Map(ports.map(port => [port, new Date(0)]))

test('ports that were never in use come first, then those that have been free longest, then four that the machine chooses', async t => {
  const held = new Set([3])
  t.same(portsToTry(settings(1, 5, true), { held, released: released(4, 2, 9) }), [1, 5, 4, 2])
  t.same(portsToTry(settings(1, 1), { held: new Set(), released: released() }), [
    1,
    ...Array(4).fill(anyPort)
  ])
  t.same(
    portsToTry(settings(1, 3, true), { held, released: released(3) }),
    [1, 2],
    'one that is held is not free'
  )
})

test('no more than 64 of the range are tried', async t => {
  const ports = portsToTry(settings(1, 500, true), { held: new Set(), released: released() })
  t.equal(ports.length, 64)
  t.equal(ports.at(-1), 64)
  const all = released(...Array.from({ length: 100 }, (_, at) => at + 1))
  t.equal(portsToTry(settings(1, 100, true), { held: new Set(), released: all }).length, 64)
})
