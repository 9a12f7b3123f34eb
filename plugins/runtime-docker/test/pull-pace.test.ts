import { test } from 'tap'
import { PullFootprint } from '../pull-footprint.js'
import { PullPace } from '../pull-pace.js'

/** A pull that began at 0, with limits of 60 seconds and 1000 bytes a second. */
function startPull() {
  const pace = new PullPace({ seconds: 60, bytesPerSecond: 1000 }, 0)
  return {
    /** What the engine says of a layer, in seconds since the beginning. */
    says: (second: number, id: string, status: string, current?: number, total = 1_000_000) =>
      pace.read(
        { id, status, progressDetail: current === undefined ? {} : { current, total } },
        second * 1000
      ),
    stall: (second: number) => pace.stall(second * 1000)
  }
}

test('a registry that says nothing is silent, before the first layer, at each, and behind the last one', t => {
  const pull = startPull()
  t.equal(pull.stall(59), undefined)
  t.equal(pull.stall(60), 'silent', 'no manifest')
  pull.says(61, '1', 'Pulling from team/app')
  pull.says(61, 'a', 'Pulling fs layer')
  t.equal(pull.stall(120), undefined)
  t.equal(pull.stall(121), 'silent', 'no layer')
  pull.says(121, 'b', 'Pulling fs layer')
  pull.says(121, 'a', 'Downloading', 500_000)
  t.equal(pull.stall(180), undefined)
  t.equal(pull.stall(181), undefined, 'the other one came')
  t.equal(pull.stall(241), 'silent', 'and no longer does')
  pull.says(242, 'a', 'Pull complete')
  pull.says(242, 'b', 'Already exists')
  t.equal(pull.stall(301), undefined)
  t.equal(pull.stall(302), 'silent', 'no configuration')
  t.end()
})

test('a registry that sends less than the limit is slow, whatever else it tells meanwhile', t => {
  const pull = startPull()
  pull.says(0, 'a', 'Pulling fs layer')
  pull.says(0, 'a', 'Downloading', 1)
  for (let second = 1; second < 60; second++) pull.says(second, 'a', 'Downloading', second * 700)
  t.equal(pull.stall(60), 'slow')
  t.end()
})

test('what comes at the limit is not slow, and each minute counts for itself', t => {
  const pull = startPull()
  pull.says(0, 'a', 'Downloading', 1)
  for (let second = 1; second <= 600; second++) {
    pull.says(second, 'a', 'Downloading', second * 1000)
    if (pull.stall(second) !== undefined) t.fail(`stalled after ${second} seconds`)
  }
  t.equal(pull.stall(661), 'slow', 'what came before does not count')
  t.end()
})

test('what the engine has not told yet of a large layer counts as received', t => {
  const pull = startPull()
  const total = 5_000_000
  pull.says(0, 'a', 'Downloading', 1, total)
  pull.says(50, 'a', 'Downloading', 50_001, total)
  t.equal(pull.stall(60), undefined, 'told is each hundredth')
  t.equal(pull.stall(120), 'slow')
  t.end()
})

test('nothing is laid to the registry while the engine has no slot for a layer, or unpacks one', t => {
  const pull = startPull()
  pull.says(0, 'a', 'Pulling fs layer')
  pull.says(0, 'a', 'Waiting')
  for (let second = 1; second < 300; second++) t.equal(pull.stall(second), undefined)
  pull.says(300, 'a', 'Downloading', 1)
  t.equal(pull.stall(358), undefined, 'its time begins with its turn')
  pull.says(358, 'a', 'Download complete')
  pull.says(358, 'a', 'Extracting', 1)
  for (let second = 359; second < 700; second++) t.equal(pull.stall(second), undefined)
  pull.says(700, 'b', 'Retrying in 1 second')
  t.equal(pull.stall(759), undefined)
  t.equal(pull.stall(760), 'silent', 'it owes an answer while another layer is unpacked')
  t.end()
})

test('a layer that begins anew counts anew', t => {
  const pull = startPull()
  pull.says(0, 'a', 'Downloading', 900_000)
  pull.says(30, 'a', 'Retrying in 5 seconds')
  for (let second = 31; second <= 150; second++) {
    pull.says(second, 'a', 'Downloading', (second - 30) * 2000)
    if (pull.stall(second) !== undefined) t.fail(`stalled after ${second} seconds`)
  }
  t.end()
})

test('a pull has written what came, and what that usually makes when it is unpacked', async t => {
  const owner = { deploymentId: 'd' }
  const footprint = new PullFootprint(owner)
  const says = (id: string, status: string, current?: number) =>
    footprint.read({ id, status, progressDetail: current === undefined ? {} : { current } })
  says('a', 'Pulling fs layer')
  says('a', 'Downloading', 100)
  says('a', 'Downloading', 1000)
  says('b', 'Downloading', 500)
  t.same(await footprint.measure(), { owner, bytes: 1500, runningStepBytes: 0, isPartial: false })
  says('a', 'Download complete')
  says('a', 'Extracting', 700)
  t.same(await footprint.measure(), { owner, bytes: 1500 + 4 * 700, runningStepBytes: 0, isPartial: true })
  says('a', 'Extracting', 1000)
  says('a', 'Pull complete')
  t.same(await footprint.measure(), { owner, bytes: 1500 + 4 * 1000, runningStepBytes: 0, isPartial: true })
})
