import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { StepCachePruner } from '../cache/cache-pruner.js'
import { log } from './kit.js'

/** A pruner whose steps are removed when `end` is called, and a clock that only shows what sleeps on it. */
function lab() {
  const sleeping = new Set<number>()
  const cleared: unknown[] = []
  let end = (): void => {}
  let wake = (): void => {}
  const pruner = new StepCachePruner({
    imageService: {
      buildSteps: async () => [{ id: 'step' }] as never,
      removeBuildStep: async () =>
        await new Promise<void>(resolve => {
          end = resolve
        }),
      clearBuildCache: async (_owner: unknown, kept: unknown) => void cleared.push(kept) as never
    },
    latest: { find: async () => undefined } as never,
    clock: {
      now: () => new Date(),
      sleep: async (ms: number, signal?: AbortSignal) =>
        await new Promise<void>((resolve, reject) => {
          sleeping.add(ms)
          wake = resolve
          signal?.addEventListener('abort', () => {
            sleeping.delete(ms)
            reject(signal.reason)
          })
        })
    } as never,
    log,
    attemptBytes: 7
  })
  return { pruner, sleeping, cleared, end: () => end(), wake: () => wake() }
}

test('what a failed build has left goes, and nothing waits any longer once it has', async t => {
  const { pruner, sleeping, cleared, end } = lab()
  const done = pruner.afterFailure('application', { keepsAttempts: true })
  await until(() => sleeping.has(30_000), 'it is waited for, half a minute at most')
  await new Promise(setImmediate)
  end()
  await done
  t.same(cleared, [{ ends: [], newest: 3, after: new Date(0), newestBytes: 7 }])
  t.same([...sleeping], [])
})

test('a removal that takes too long is left to itself, and what is not worth keeping is not kept', async t => {
  const { pruner, sleeping, cleared, end, wake } = lab()
  const done = pruner.afterFailure('application', { keepsAttempts: false })
  await until(() => sleeping.size === 1, 'it is waited for')
  await new Promise(setImmediate)
  wake()
  await done
  t.same(cleared, [])
  end()
  await until(() => cleared.length === 1, 'it goes on')
  t.match(cleared, [{ newest: 0 }])
})
