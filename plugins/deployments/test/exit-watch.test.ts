import type { ContainerEvent, ContainerRuntime, ContainerState } from 'busbar/api/containers'
import { testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { watchExit } from '../rollout/exit-watch.js'

type Look = Partial<ContainerState> | undefined | 'away'
type Outage = NonNullable<Extract<ContainerEvent, { kind: 'resync' }>['outage']>

const outage: Outage = { lostAt: new Date(0), backAt: new Date(1) }
const begun = '2026-01-01T00:00:00Z'
const runs: Look = { status: 'running', startedAt: begun }

/** An engine that says what the test tells it to, and counts how often it is asked. */
function engine() {
  let state: Look = { status: 'created' }
  let whileAsked = (): void => {}
  let looks = 0
  let isEnded = false
  const waiting: ContainerEvent[] = []
  let wake = (): void => {}
  let fault: Error | undefined
  const runtime = {
    inspect: async () => {
      looks++
      whileAsked()
      return state === 'away' ? await Promise.reject(new Error('no engine')) : state
    },
    async *events(signal: AbortSignal) {
      signal.addEventListener('abort', () => {
        isEnded = true
        wake()
      })
      while (!isEnded) {
        if (fault !== undefined) throw fault
        const next = waiting.shift()
        if (next !== undefined) yield next
        else
          await new Promise<void>(resolve => {
            wake = resolve
          })
      }
    }
  } as unknown as ContainerRuntime
  return {
    runtime,
    is(now: Look): void {
      state = now
    },
    tell(event: ContainerEvent): void {
      waiting.push(event)
      wake()
    },
    fail(): void {
      fault = new Error('the stream broke off')
      wake()
    },
    /** What happens while it is asked. */
    meanwhile(act: () => void): void {
      whileAsked = act
    },
    looks: () => looks,
    isEnded: () => isEnded
  }
}

const event = (action: 'start' | 'die', containerId = 'web', exitCode: number | null = null) =>
  ({ kind: 'container', action, containerId, owner: {}, exitCode }) as ContainerEvent

async function watched(t: Test, { isHeard = true }: { isHeard?: boolean } = {}) {
  const clock = testClock()
  const docker = engine()
  if (isHeard) docker.tell({ kind: 'resync' })
  const watching = watchExit(docker.runtime, clock, 'web')
  if (!isHeard) await clock.advance(2000)
  const watch = await watching
  t.teardown(() => watch.stop())
  let exit: unknown = 'none'
  void watch.exited.then(seen => {
    exit = seen
  })
  return {
    clock,
    docker,
    watch,
    /** What is known of the end when everything that has been told has been heard. */
    async exit(): Promise<unknown> {
      for (let turns = 0; turns < 4; turns++) await new Promise(resolve => setImmediate(resolve))
      return exit
    }
  }
}

test('the end that the engine tells is reported with its exit code, and nothing else that it tells', async t => {
  const { docker, exit } = await watched(t)
  docker.is(runs)
  docker.tell(event('start'))
  docker.tell(event('die', 'another', 1))
  docker.tell({ kind: 'resync' })
  t.equal(await exit(), 'none')
  t.equal(docker.looks(), 0, 'an engine that had not gone away is not asked')
  docker.is({ status: 'exited', exitCode: 0, startedAt: begun, oomKilled: true })
  docker.tell(event('die', 'web', 137))
  t.same(await exit(), { exitCode: 137, oomKilled: true, isEngineLost: false })
})

test('an end that the engine tells is reported also when the container cannot be looked at', async t => {
  const { docker, exit } = await watched(t)
  docker.is('away')
  docker.tell(event('die', 'web', 1))
  t.same(await exit(), { exitCode: 1, oomKilled: false, isEngineLost: false })
})

test('an end whose event is lost is seen within a second, and reported when no event has told it better', async t => {
  const ended: Look = { status: 'exited', exitCode: 3, oomKilled: true, startedAt: begun }
  for (const [ms, seen] of [
    [3499, 'none'],
    [3500, { exitCode: 3, oomKilled: true, isEngineLost: false }]
  ] as const) {
    const { clock, docker, exit } = await watched(t)
    docker.is(runs)
    await clock.advance(5000)
    t.equal(await exit(), 'none', 'it runs')
    docker.is(ended)
    await clock.advance(ms)
    t.same(await exit(), seen, `${ms} ms`)
  }
  const { clock, docker, exit } = await watched(t)
  docker.is({ status: 'restarting', exitCode: 0, oomKilled: false, startedAt: begun })
  void clock.sleep(3000).then(() => docker.tell(event('die', 'web', 9)))
  await clock.advance(3500)
  t.match(await exit(), { exitCode: 9 }, 'the event tells it better')
})

test('one that runs again since another moment has ended, and one that is gone: with which code is not known', async t => {
  for (const later of [{ status: 'running', startedAt: '2026-01-01T00:00:09Z' }, undefined] as const) {
    const { clock, docker, exit } = await watched(t)
    docker.is(runs)
    await clock.advance(1000)
    docker.is(later)
    await clock.advance(3500)
    t.same(await exit(), { exitCode: null, oomKilled: false, isEngineLost: false }, later?.status ?? 'gone')
  }
})

test('one that has not been started yet, or that the engine does not answer for, has not ended', async t => {
  const { clock, docker, exit } = await watched(t)
  await clock.advance(10_000)
  t.equal(await exit(), 'none')
  docker.is('away')
  await clock.advance(10_000)
  t.equal(await exit(), 'none')
  docker.is(runs)
  await clock.advance(10_000)
  t.equal(await exit(), 'none')
})

test('after an outage of the engine it is known at once whether the container has outlived it', async t => {
  const rows: ReadonlyArray<{ what: string; before?: Look; after: Look; isLost: boolean }> = [
    { what: 'it runs as before', before: runs, after: runs, isLost: false },
    { what: 'it runs, and had not been looked at', after: runs, isLost: false },
    { what: 'it was not started yet', after: { status: 'created' }, isLost: false },
    { what: 'the engine is away again', before: runs, after: 'away', isLost: false },
    {
      what: 'it was started again',
      before: runs,
      after: { status: 'running', startedAt: 'later' },
      isLost: true
    },
    { what: 'it was ended', before: runs, after: { status: 'exited', startedAt: begun }, isLost: true },
    { what: 'it was ended, and had not been looked at', after: { status: 'exited' }, isLost: true },
    { what: 'it is gone', before: runs, after: undefined, isLost: true }
  ]
  for (const { what, before, after, isLost } of rows) {
    const { clock, docker, exit } = await watched(t)
    if (before !== undefined) {
      docker.is(before)
      await clock.advance(1000)
    }
    docker.is(after)
    docker.tell({ kind: 'resync', outage })
    t.same(await exit(), isLost ? { exitCode: null, oomKilled: false, isEngineLost: true } : 'none', what)
  }
})

test('it waits until the events are listened to, for two seconds at most, and not for a stream that is lost', async t => {
  const clock = testClock()
  const docker = engine()
  let isReady = false
  const watching = watchExit(docker.runtime, clock, 'web').then(watch => {
    isReady = true
    return watch
  })
  await clock.advance(1999)
  t.equal(isReady, false)
  await clock.advance(1)
  t.equal(isReady, true, 'two seconds')
  ;(await watching).stop()

  for (const begin of ['tell', 'fail'] as const) {
    const other = engine()
    const ready = watchExit(other.runtime, testClock(), 'web')
    await new Promise(resolve => setImmediate(resolve))
    if (begin === 'tell') other.tell({ kind: 'resync' })
    else other.fail()
    const watch = await ready
    watch.stop()
    t.pass(begin)
  }
})

test('without events the container is looked at all the same', async t => {
  const { clock, docker, exit } = await watched(t, { isHeard: false })
  docker.fail()
  docker.is(runs)
  await clock.advance(2000)
  t.equal(await exit(), 'none')
  docker.is({ status: 'exited', exitCode: 4, startedAt: begun })
  await clock.advance(3500)
  t.same(await exit(), { exitCode: 4, oomKilled: false, isEngineLost: false })
})

test('a watch that is stopped neither looks nor listens, and reports nothing of what it had begun', async t => {
  const { clock, docker, watch, exit } = await watched(t)
  docker.is(runs)
  await clock.advance(1000)
  t.equal(docker.looks(), 1)
  watch.stop()
  t.equal(docker.isEnded(), true)
  docker.is({ status: 'exited', exitCode: 4, startedAt: begun })
  await clock.advance(10_000)
  t.equal(docker.looks(), 1)
  t.equal(await exit(), 'none')
})

test('a watch that is stopped while the engine is asked reports nothing of what it answers', async t => {
  const { clock, docker, watch, exit } = await watched(t)
  docker.is({ status: 'exited', exitCode: 4, startedAt: begun })
  docker.meanwhile(watch.stop)
  await clock.advance(10_000)
  t.equal(docker.looks(), 1)
  t.equal(await exit(), 'none')
})
