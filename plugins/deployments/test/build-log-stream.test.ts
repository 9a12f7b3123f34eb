import type { SseFrame } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { type BuildLogPlace, readEventId } from '../records/build-log-place.js'
import { BuildLogPoll } from '../records/build-log-poll.js'
import { streamBuildLog } from '../records/build-log-stream.js'
import type { DeploymentLogStore, LogProgress, WrittenChunk } from '../records/deployment-log-store.js'
import type { DeploymentStore } from '../records/deployment-store.js'

const pollMs = 300

/** Deployments that are being built, in memory, with a count of what was asked. */
function setUp(ids: readonly string[]) {
  const states = new Map(
    ids.map(id => [
      id,
      { status: 'building', error_message: null as string | null, chunks: [] as WrittenChunk[] }
    ])
  )
  const stateOf = (id: string) => states.get(id) ?? { status: 'failed', error_message: null, chunks: [] }
  let queries = 0
  let largestPage = 0
  const asked = <T>(answer: T): Promise<T> => {
    queries++
    return Promise.resolve(answer)
  }
  const store = { get: (_: string, id: string) => asked(states.get(id)) }
  const logs = {
    nextSeq: (id: string) => asked(stateOf(id).chunks.length),
    read: async (id: string, from: number, limit?: number) => {
      const page = stateOf(id).chunks.slice(from, limit === undefined ? undefined : from + limit)
      largestPage = Math.max(largestPage, page.length)
      return await asked(page)
    },
    cut: () => asked({ lines: 0, bytes: 0 }),
    progress: (wanted: readonly string[]) =>
      asked(
        wanted.flatMap(id => {
          const state = states.get(id)
          return state === undefined
            ? []
            : [{ ...state, id, next_seq: state.chunks.length } as unknown as LogProgress]
        })
      )
  }
  const clock = testClock()
  // Only what the streams use of them is there.
  const parts = {
    store: store as unknown as DeploymentStore,
    logs: logs as unknown as DeploymentLogStore,
    clock
  }
  const poll = new BuildLogPoll(parts)
  const aborted = new AbortController()
  return {
    tick: async (): Promise<number> => {
      const before = queries
      await clock.advance(pollMs)
      return queries - before
    },
    write: (id: string, msg: string): void => {
      const { chunks } = stateOf(id)
      const text = msg.split(' ').map(word => `{"msg":"${word}"}\n`)
      chunks.push({ seq: chunks.length, is_tail: false, lines: text.length, bytes: 1, text: text.join('') })
    },
    end: (id: string, error: string | null): void => {
      Object.assign(stateOf(id), { status: error === null ? 'success' : 'failed', error_message: error })
    },
    remove: (id: string): void => {
      states.delete(id)
    },
    stop: (): void => {
      aborted.abort()
    },
    largestPage: () => largestPage,
    /** What a new stream has given so far. */
    open(id: string, after?: BuildLogPlace): SseFrame[] & { isOver?: boolean } {
      const frames: SseFrame[] & { isOver?: boolean } = []
      void (async () => {
        const source = streamBuildLog(
          { projectId: 'p', deploymentId: id, after },
          { ...parts, poll },
          aborted.signal
        )
        for await (const frame of source) frames.push(frame)
        frames.isOver = true
      })()
      return frames
    }
  }
}

test('however many streams of however many builds are open, one query asks for all of them', async t => {
  const ids = ['a', 'b', 'c', 'd']
  const { open, tick, write, stop } = setUp(ids)
  const streams = ids.flatMap(id => Array.from({ length: 100 }, () => ({ id, frames: open(id) })))
  await tick()
  for (let n = 0; n < 5; n++) t.equal(await tick(), 1, 'nothing is new')
  write('b', 'one')
  t.equal(await tick(), 2, 'the lines that have come are read once')
  t.equal(await tick(), 1)
  for (const { id, frames } of streams)
    if (frames.length !== (id === 'b' ? 1 : 0)) t.fail(`${id} has given ${frames.length} frames`)
  stop()
  await tick()
  t.equal(await tick(), 0, 'nobody is there any more')
})

test('each stream gives the lines from its beginning on, in order, and the last ones before the end', async t => {
  const { open, tick, write, end } = setUp(['a'])
  write('a', 'before')
  const first = open('a')
  await tick()
  write('a', 'one')
  await tick()
  const second = open('a')
  await until(async () => (await tick()) === 1, 'the second one waits')
  write('a', 'two')
  write('a', 'three')
  end('a', 'it broke')
  await tick()
  const rest = [
    { id: '2.1', data: '{"msg":"two"}' },
    { id: '3.1', data: '{"msg":"three"}' },
    { event: 'error', data: 'it broke' },
    { event: 'done', data: 'build log stream ended' }
  ]
  t.same([...first], [{ id: '1.1', data: '{"msg":"one"}' }, ...rest])
  t.same([...second], rest)
  t.ok(first.isOver && second.isOver)
  t.equal(await tick(), 0)
})

test('a stream ends with its deployment', async t => {
  const { open, tick, remove } = setUp(['a'])
  const frames = open('a')
  await tick()
  remove('a')
  await tick()
  t.same([...frames], [{ event: 'done', data: 'build log stream ended' }])
})

test('what has ended is replayed in order and a few pieces at a time, however long it is', async t => {
  const { open, write, end, largestPage } = setUp(['a'])
  for (let n = 0; n < 100; n++) write('a', `${n}`)
  end('a', null)
  const frames = open('a')
  await until(() => frames.isOver === true, 'it is over')
  t.same(
    [...frames],
    [
      ...Array.from({ length: 100 }, (_, n) => ({ id: `${n}.1`, data: `{"msg":"${n}"}` })),
      { event: 'done', data: 'build success' }
    ]
  )
  t.ok(largestPage() <= 16, `${largestPage()} pieces`)
})

test('who comes again with the id of the last line gets what stands behind it, while it is built and afterwards', async t => {
  const { open, tick, write, end } = setUp(['a'])
  write('a', 'one two three')
  write('a', 'four')
  const behind = [
    { id: '0.3', data: '{"msg":"three"}' },
    { id: '1.1', data: '{"msg":"four"}' }
  ]
  const live = open('a', readEventId('0.2'))
  await until(async () => (await tick()) >= 0 && live.length === 2, 'the lines that were written meanwhile')
  t.same([...live], behind)
  write('a', 'five')
  end('a', null)
  await until(async () => (await tick()) >= 0 && live.isOver === true, 'it is over')
  const last = { id: '2.1', data: '{"msg":"five"}' }
  t.same([...live], [...behind, last, { event: 'done', data: 'build log stream ended' }])
  const late = open('a', readEventId('1.1'))
  await until(() => late.isOver === true, 'it is over')
  t.same([...late], [last, { event: 'done', data: 'build success' }])
  const whole = open('a', readEventId('0'))
  await until(() => whole.isOver === true, 'it is over')
  t.equal(whole.length, 6)
})

test('what is no id of a line is as if it were not there', t => {
  for (const text of [undefined, '', 'x', '-1', '1.', '1.2.3', '9999999999', ['1']])
    t.equal(readEventId(text), undefined, String(text))
  t.end()
})
