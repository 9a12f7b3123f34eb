/** Readers at any pace. */
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { newest } from '../newest.js'

/** Something to follow, and how many do. */
function source() {
  let followers = 0
  let give: (value: number) => void = () => {}
  let end: () => void = () => {}
  return {
    followers: () => followers,
    give: (value: number) => give(value),
    end: () => end(),
    follow: (follower: { give: (value: number) => void; end: () => void }) => {
      followers++
      give = follower.give
      end = follower.end
      return () => {
        followers--
      }
    }
  }
}

test('a slow reader gets the newest value and none of those before', async t => {
  const { follow, give, followers } = source()
  const values = newest(follow, new AbortController().signal)
  const first = values.next()
  give(1)
  t.same(await first, { done: false, value: 1 })
  for (const value of [2, 3, 4]) give(value)
  t.same(await values.next(), { done: false, value: 4 })
  t.equal(followers(), 1)
  await values.return(undefined)
  t.equal(followers(), 0)
})

test('it ends with what is followed, after the last value', async t => {
  const { follow, give, end, followers } = source()
  const values = newest(follow, new AbortController().signal)
  const first = values.next()
  give(1)
  await first
  give(2)
  end()
  t.same(await values.next(), { done: false, value: 2 })
  t.same(await values.next(), { done: true, value: undefined })
  t.equal(followers(), 0)
})

test('it ends at the abort, also while it waits', async t => {
  const { follow, followers } = source()
  const ending = new AbortController()
  const waiting = newest(follow, ending.signal).next()
  await until(() => followers() === 1, 'it follows')
  ending.abort()
  t.same(await waiting, { done: true, value: undefined })
  t.equal(followers(), 0)
  t.same(await newest(follow, ending.signal).next(), { done: true, value: undefined })
  t.equal(followers(), 0)
})
