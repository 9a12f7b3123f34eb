import { test } from 'tap'
import { FetchPace } from '../registry/client/fetch-pace.js'

/** A fetch that began at 0, with limits of 60 seconds and 1000 bytes a second; times in seconds. */
function startFetch() {
  const pace = new FetchPace({ seconds: 60, bytesPerSecond: 1000 }, 0)
  return {
    asked: (second: number) => pace.asked(second * 1000),
    received: (second: number, bytes: number) => pace.received(bytes, second * 1000),
    rest: (second: number) => pace.rest(second * 1000),
    goOn: (second: number) => pace.goOn(second * 1000),
    stall: (second: number) => pace.stall(second * 1000)
  }
}

test('a registry that says nothing is silent, before the first byte and after any', t => {
  const fetch = startFetch()
  t.equal(fetch.stall(59), undefined)
  t.equal(fetch.stall(60), 'silent', 'no manifest')
  fetch.asked(61)
  t.equal(fetch.stall(120), undefined, 'what is asked for has its own time')
  fetch.received(120, 500_000)
  t.equal(fetch.stall(179), undefined)
  t.equal(fetch.stall(180), 'silent', 'it came, and no longer does')
  t.end()
})

test('a registry that sends less than the limit is slow, however often', t => {
  const fetch = startFetch()
  for (let second = 1; second < 60; second++) fetch.received(second, 700)
  t.equal(fetch.stall(60), 'slow')
  t.end()
})

test('bytes of no length are no bytes', t => {
  const fetch = startFetch()
  for (let second = 1; second < 60; second++) fetch.received(second, 0)
  t.equal(fetch.stall(60), 'silent')
  t.end()
})

test('what comes at the limit is not slow, and each minute counts for itself', t => {
  const fetch = startFetch()
  fetch.received(0, 600)
  for (let second = 1; second <= 600; second++) {
    fetch.received(second, 1000)
    if (fetch.stall(second) !== undefined) t.fail(`stalled after ${second} seconds`)
  }
  fetch.received(630, 10)
  fetch.received(659, 10)
  t.equal(fetch.stall(660), 'slow', 'what came before does not count')
  t.end()
})

test('the time in which nobody takes what comes is not that of the registry', t => {
  const fetch = startFetch()
  fetch.received(10, 100)
  fetch.rest(10)
  for (let second = 11; second < 500; second++) t.equal(fetch.stall(second), undefined)
  fetch.goOn(500)
  t.equal(fetch.stall(549), undefined)
  t.equal(fetch.stall(550), 'slow', 'ten seconds before and fifty since')
  fetch.asked(550)
  fetch.received(551, 100)
  for (let second = 552; second < 620; second++) {
    fetch.rest(second)
    fetch.goOn(second + 0.001)
  }
  t.equal(fetch.stall(620), 'silent', 'short rests are no way around it')
  t.end()
})
