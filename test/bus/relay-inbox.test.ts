import type { Log } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { messagesFrame, type RelayFrame } from '../../core/bus/relay-frame.js'
import { RelayInbox } from '../../core/bus/relay-inbox.js'

const failed: object[] = []
const log = { error: (fields: object) => failed.push(fields) } as unknown as Log
const numbered = (number: number, text = ''): string =>
  messagesFrame('b', number, [`["c","e",${JSON.stringify(text)}]`])
const numberOf = (frame: RelayFrame): number | string =>
  frame.kind === 'messages' ? frame.number : frame.kind

test('one frame is handed on at once, and that of the process itself never', t => {
  const taken: RelayFrame[] = []
  const inbox = new RelayInbox(
    'a',
    frame => taken.push(frame),
    () => {},
    log
  )
  inbox.add('{"kind":"hello","from":"a"}')
  inbox.add(messagesFrame('a', 0, ['["c","e",1]']))
  t.same(taken, [])
  inbox.add(numbered(0))
  t.same(taken.map(numberOf), [0])
  t.end()
})

test('many frames are handed on in their order, and others have turns meanwhile', async t => {
  const taken: Array<number | string> = []
  const inTurn: number[] = []
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  t.teardown(() => {
    isOver = true
  })
  setImmediate(count)
  const inbox = new RelayInbox(
    'a',
    frame => {
      taken.push(numberOf(frame))
      inTurn.push(turns)
      for (const end = performance.now() + 1; performance.now() < end; );
    },
    () => {},
    log
  )
  for (let n = 0; n < 50; n++) inbox.add(numbered(n))
  inbox.add('{"kind":"bye","from":"b"}')
  t.ok(taken.length > 0 && taken.length <= 5, 'a part at once')
  await until(() => taken.length === 51, 'all frames')
  t.same(taken, [...Array.from({ length: 50 }, (_, n) => n), 'bye'])
  for (const turn of new Set(inTurn)) t.ok(inTurn.filter(one => one === turn).length <= 10)
})

test('messages beyond 16 MiB are lost and counted, and nothing else is', async t => {
  const taken: Array<number | string> = []
  const gaps: number[] = []
  const inbox = new RelayInbox(
    'a',
    frame => {
      taken.push(numberOf(frame))
      // The first one takes all of its turn.
      if (taken.length === 1) for (const end = performance.now() + 6; performance.now() < end; );
    },
    () => gaps.push(taken.length),
    log
  )
  inbox.add(numbered(0))
  const mebibyte = 'x'.repeat(1024 * 1024)
  for (let n = 1; n <= 20; n++) inbox.add(numbered(n, mebibyte))
  inbox.add('{"kind":"alive","from":"b"}')
  inbox.add(`{"kind":"piece","from":"b","of":9,"index":0,"count":2,"text":"${'x'.repeat(2 * 1024 * 1024)}"}`)
  inbox.add(`{"kind":"piece","from":"b","of":10,"index":0,"count":2,"isOfControl":true,"text":""}`)
  inbox.add(`{"kind":"piece","from":"b","of":9,"index":1,"count":2,"text":"${'x'.repeat(2 * 1024 * 1024)}"}`)
  await until(() => taken.includes('piece'), 'what came last')
  t.same(taken, [...Array.from({ length: 16 }, (_, n) => n), 'alive', 'piece'])
  t.equal(inbox.lost, 6)
  t.equal(gaps.length, 7, 'each is told')
})

test('a frame that cannot be taken keeps none of those behind it from being heard, and the end all', async t => {
  const taken: Array<number | string> = []
  const inbox = new RelayInbox(
    'a',
    frame => {
      if (numberOf(frame) === 1) throw new Error('the second')
      taken.push(numberOf(frame))
      for (const end = performance.now() + 6; performance.now() < end; );
      if (taken.length === 2) inbox.close()
    },
    () => {},
    log
  )
  for (let n = 0; n < 5; n++) inbox.add(numbered(n))
  await until(() => taken.length >= 2, 'the one behind it')
  for (let n = 0; n < 5; n++) await new Promise(resolve => setImmediate(resolve))
  inbox.add(numbered(5))
  t.equal(failed.length, 1)
  t.same(taken, [0, 2])
})
