import type { ContainerRuntime } from 'busbar/api/containers'
import type { Clock } from 'busbar/sdk'
import { test } from 'tap'
import { proveHealthy } from '../health/health-proof.js'

test('a version is asked again so often that hardly a tenth of its start is added by the asking, and it is not asked without end', async t => {
  let elapsed = 0
  const pauses: Array<{ readonly at: number; readonly ms: number }> = []
  const clock = {
    now: () => new Date('2026-01-01T00:00:00Z'),
    elapsed: () => elapsed,
    sleep: async (ms: number) => {
      pauses.push({ at: elapsed, ms })
      elapsed += ms
    }
  } as unknown as Clock
  const runtime = {
    dial: async () => await Promise.reject(new Error('it does not run yet')),
    routeConflict: async () => null
  } as unknown as ContainerRuntime
  await t.rejects(
    proveHealthy(
      {
        check: { type: 'http', path: '/', expectStatus: 0, windowSeconds: 120 },
        containerId: 'web',
        port: 80,
        isPortKnown: true
      },
      { runtime, clock, signal: new AbortController().signal }
    ),
    /within 120 s/
  )
  t.ok(
    pauses.every(({ at, ms }) => ms < 11 + at / 10),
    'no pause is longer than a tenth of the time so far'
  )
  t.ok(pauses.length < 150, 'a minute costs few questions')
})
