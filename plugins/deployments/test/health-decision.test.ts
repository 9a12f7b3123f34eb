import { test } from 'tap'
import { decideHealth, failuresInARow } from '../health/health-decision.js'

const known = (changes: Partial<Parameters<typeof decideHealth>[0]> = {}) => ({
  applicationStatus: 'running' as const,
  healthStatus: 'passing',
  failures: 0,
  ...changes
})

test('three failures in a row make an application unhealthy, and one success ends it', async t => {
  t.equal(failuresInARow, 3)
  t.same(decideHealth(known(), true), { failures: 0 })
  t.same(decideHealth(known({ failures: 1 }), false), { failures: 2 })
  t.same(decideHealth(known({ failures: 2 }), false), {
    failures: 3,
    healthStatus: 'failing',
    tell: 'unhealthy'
  })
  t.same(
    decideHealth(known({ failures: 3, healthStatus: 'failing', applicationStatus: 'unhealthy' }), false),
    { failures: 4 },
    'what is known is not told again'
  )
  t.same(decideHealth(known({ failures: 2, applicationStatus: 'stopped' }), false), {
    failures: 3,
    healthStatus: 'failing'
  })
  t.same(
    decideHealth(known({ failures: 4, healthStatus: 'failing', applicationStatus: 'unhealthy' }), true),
    {
      failures: 0,
      healthStatus: 'passing',
      tell: 'healthy'
    }
  )
  t.same(decideHealth(known({ healthStatus: null }), true), { failures: 0, healthStatus: 'passing' })
})
