import { getEventListeners } from 'node:events'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { InboxFeed } from '../inbox-feed.js'
import type { Place, StoredNotification } from '../inbox-store.js'

const forever = new AbortController().signal
const row = (position: number): StoredNotification => ({ position }) as StoredNotification

/** A feed over inboxes in memory: by user, the positions that are taken. */
function feedOver(inboxes: Record<string, number[]>) {
  const clock = testClock()
  const asked: Array<readonly Place[]> = []
  const warnings: string[] = []
  const state = { isAway: false }
  const feed = new InboxFeed({
    clock,
    log: { warn: (_fields: unknown, message: string) => warnings.push(message) } as never,
    inbox: {
      after: async (places, limit) => {
        asked.push(places.map(({ userId, position }) => ({ userId, position })))
        if (state.isAway) throw new Error('away')
        return places.map(({ userId, position }) =>
          (inboxes[userId] ?? [])
            .filter(one => one > position)
            .slice(0, limit)
            .map(row)
        )
      }
    }
  })
  return { feed, clock, asked, warnings, state }
}

test('one statement looks for all who wait, and those who were told are looked for alone', async t => {
  const inboxes: Record<string, number[]> = { ann: [1], bob: [], cas: [] }
  const { feed, asked } = feedOver(inboxes)
  const first = ['ann', 'bob', 'cas'].map(userId => feed.next({ userId, position: 0 }, forever))
  t.same(await first[0], [row(1)])
  await until(() => feed.readers === 2, 'the others wait')
  const more = Array.from({ length: 3 }, () => feed.next({ userId: 'bob', position: 0 }, forever))
  await until(() => asked.flat().length === 6, 'each was looked for when it came')
  asked.length = 0
  inboxes.bob?.push(1)
  feed.wake(new Set(['bob', 'nobody']))
  t.same(await Promise.all([first[1], ...more]), Array(4).fill([row(1)]))
  t.same(
    asked,
    [Array(4).fill({ userId: 'bob', position: 0 })],
    'all of bob in one statement, and cas not at all'
  )
  t.equal(feed.readers, 1)
  feed.close()
  t.equal(await first[2], null)
})

test('a reader who takes their time holds what they were given, and nothing more is read for them', async t => {
  const { feed, asked } = feedOver({ ann: Array.from({ length: 1_000 }, (_, n) => n + 1) })
  const given = await feed.next({ userId: 'ann', position: 0 }, forever)
  t.equal(given?.length, 50)
  for (let n = 0; n < 100; n++) feed.wake(null)
  t.same([feed.readers, asked.length], [0, 1])
  t.same((await feed.next({ userId: 'ann', position: 50 }, forever))?.[0], row(51))
  feed.close()
})

test('what comes while it is being looked is looked for again', async t => {
  const inboxes: Record<string, number[]> = { ann: [] }
  let release = (): void => {}
  const looking = new Promise<void>(resolve => {
    release = resolve
  })
  let looks = 0
  const feed = new InboxFeed({
    clock: testClock(),
    log: { warn: () => {} } as never,
    inbox: {
      after: async places => {
        const found = places.map(({ userId }) => (inboxes[userId] ?? []).map(row))
        if (looks++ === 0) await looking
        return found
      }
    }
  })
  const next = feed.next({ userId: 'ann', position: 0 }, forever)
  inboxes.ann?.push(1)
  feed.wake(new Set(['ann']))
  release()
  t.same(await next, [row(1)])
  t.equal(looks, 2)
  feed.close()
})

test('while the database is away readers wait, and are looked for again in a while', async t => {
  const { feed, state, warnings, clock } = feedOver({ ann: [1] })
  state.isAway = true
  const next = feed.next({ userId: 'ann', position: 0 }, forever)
  await until(() => warnings.length === 1, 'it was said')
  t.same(warnings, ['new notifications could not be looked for'])
  state.isAway = false
  t.equal(feed.readers, 1)
  await clock.advance(15_000)
  t.same(await next, [row(1)])
  feed.close()
})

test('who goes away leaves nothing behind, and a closed feed keeps nobody', async t => {
  const { feed } = feedOver({})
  const stop = new AbortController()
  const next = feed.next({ userId: 'ann', position: 0 }, stop.signal)
  stop.abort()
  t.equal(await next, null)
  t.equal(feed.readers, 0)
  t.same(getEventListeners(stop.signal, 'abort'), [])
  t.equal(await feed.next({ userId: 'ann', position: 0 }, stop.signal), null)
  feed.close()
  t.equal(await feed.next({ userId: 'ann', position: 0 }, forever), null)
})
