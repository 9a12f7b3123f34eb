import { type Log, pause } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { sweepIdleEngines, tidyEngines } from '../engines/engine-sweep.js'

const log = { warn: () => {}, debug: () => {} } as unknown as Log

/** Work on engines that goes on until it is ended, by project. */
function hanging() {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  return {
    begun,
    work: async (projectId: string): Promise<void> => {
      begun.push(projectId)
      if (projectId.startsWith('broken')) throw new Error('it does not stop')
      if (projectId.startsWith('hung'))
        await new Promise<void>(resolve => {
          ends.set(projectId, resolve)
        })
    },
    end: (projectId: string) => ends.get(projectId)?.()
  }
}

test('an idle build engine that hangs or cannot be stopped delays no other one', async t => {
  const clock = testClock()
  const { begun, work, end } = hanging()
  const stop = new AbortController()
  const idle = ['hung-1', 'broken', 'a', 'b', 'hung-2', 'c', 'd']
  const records = { idleSince: async () => idle }
  const sweeping = sweepIdleEngines(
    { engines: { stop: work }, records, clock, log, idleMs: 60_000 },
    stop.signal
  )
  t.teardown(() => stop.abort())
  await until(() => begun.length === 7, 'all of them were told to stop')
  t.same(begun, idle)
  end('hung-1')
  end('hung-2')
  stop.abort()
  await sweeping
})

test('few are stopped at once, and one that takes too long goes on beside the next', async t => {
  const clock = testClock()
  const { begun, work, end } = hanging()
  const stop = new AbortController()
  const idle = ['hung-1', 'hung-2', 'hung-3', 'hung-4', 'hung-5', 'a']
  const records = { idleSince: async () => idle }
  const sweeping = sweepIdleEngines(
    { engines: { stop: work }, records, clock, log, idleMs: 60_000 },
    stop.signal
  )
  t.teardown(() => stop.abort())
  await until(() => begun.length === 4, 'the first four were told to stop')
  await pause({ sleep: async () => await new Promise(setImmediate) }, 0, stop.signal)
  t.same(begun, idle.slice(0, 4))
  end('hung-3')
  await until(() => begun.length === 5, 'another one was told when one was done')
  t.same(begun, idle.slice(0, 5))
  await clock.advance(30_000)
  await until(() => begun.includes('a'), 'the last one was told')
  t.same(begun.slice(0, 6), idle, 'what goes on is not told again')
  stop.abort()
  await sweeping
})

test('a build engine in which tidying hangs keeps no other one from being tidied', async t => {
  const clock = testClock()
  const { begun, work, end } = hanging()
  const stop = new AbortController()
  const tidying = tidyEngines(
    {
      engines: { tidy: work, untidy: () => ['b'] },
      records: {
        abandoned: async () => [
          { projectId: 'hung', deploymentId: '1' },
          { projectId: 'a', deploymentId: '2' }
        ]
      },
      clock,
      log
    },
    stop.signal
  )
  t.teardown(() => stop.abort())
  await until(() => begun.length === 3, 'all of them were tidied')
  t.same(begun, ['hung', 'a', 'b'])
  end('hung')
  stop.abort()
  await tidying
})
