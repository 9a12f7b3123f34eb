import { setImmediate as turn } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { LogHistory } from '../kept/log-history.js'
import { placeOf } from '../kept/log-id.js'
import type { LogStore } from '../kept/log-store.js'

const begin = Date.parse('2026-01-02T03:04:05.000Z')

/** A source without an end: each step is one chunk of one line, a second earlier than the one before. */
function setUp(longestMs: number, wait: () => Promise<void> = async () => await turn()) {
  let steps = 0
  const store: Pick<LogStore, 'typeOf' | 'latest' | 'count'> = {
    typeOf: async () => 'application',
    count: async () => 1,
    latest: async () => {
      const ms = begin - 1000 * steps++
      const chunk = {
        ordinal: 1e6 - steps,
        lines: 1,
        beginsAt: ms,
        times: '0',
        kinds: '2',
        text: `line ${steps}.`
      }
      await wait()
      return {
        chunks: [{ ...chunk, container_id: 'c', deployment_id: null }],
        end: { ordinal: chunk.ordinal, endsAt: ms },
        isLast: false
      }
    }
  }
  const history = new LogHistory(store as LogStore, longestMs)
  return {
    steps: () => steps,
    search: async (
      asker: string,
      { q = 'nothing', signal = new AbortController().signal, cursor = '' } = {}
    ) => await history.page('s', { q }, { limit: 10, offset: 0, cursor }, { asker, signal })
  }
}

test('a search that takes too long ends with what it has found, and says where the next one goes on', async t => {
  const { search, steps } = setUp(100)
  const { rows, total, next } = await search('ann', { q: 'line 3.' })
  t.equal(rows[0]?.message, 'line 3.')
  t.equal(total, undefined)
  const place = placeOf(next)
  t.equal(place?.ms, begin - 1000 * (steps() - 1) + 1, 'behind what was looked at last')
})

test('a search whose client has gone ends', async t => {
  const { search, steps } = setUp(60_000)
  const gone = new AbortController()
  const searched = search('ann', { signal: gone.signal })
  await until(() => steps() > 3, 'it is under way')
  gone.abort(new Error('the client has gone'))
  await t.rejects(searched, { message: 'the client has gone' })
  const made = steps()
  for (let n = 0; n < 20; n++) await turn()
  t.equal(steps(), made)
})

test('who has had no turn in time is told when to try again; others end with what they have found', async t => {
  let free = (): void => {}
  const held = new Promise<void>(resolve => {
    free = resolve
  })
  const { search, steps } = setUp(100, async () => await held)
  const first = [search('ann'), search('bob')]
  await until(() => steps() === 2, 'two are under way')
  await t.rejects(search('cid'), {
    status: 503,
    code: 'E_LOGS_BUSY',
    headers: { 'retry-after': '5' },
    details: { remedy: /since and until/ }
  })
  t.equal(steps(), 2)
  free()
  for (const { rows, next } of await Promise.all(first)) {
    t.same(rows, [])
    t.type(placeOf(next), 'object')
  }
})

test('searches of two go on side by side, however many a third one makes', async t => {
  const { search } = setUp(200)
  const order: string[] = []
  const made = [...Array<string>(20).fill('mallory'), 'ann', 'bob'].map(async asker => {
    await search(asker).then(
      () => order.push(asker),
      () => order.push(`${asker} is told to try again`)
    )
  })
  await Promise.all(made)
  for (const asker of ['ann', 'bob']) t.ok(order.includes(asker), `${asker} has had turns`)
})
