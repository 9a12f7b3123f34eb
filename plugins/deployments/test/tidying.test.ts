import { test } from 'tap'
import { fateOf } from '../tidying.js'

test('label and record decide what becomes of a container', async t => {
  t.equal(fateOf('a', 'success', 'a'), 'serves')
  t.equal(fateOf('b', 'success', 'a'), 'stop', 'it served once and stops with grace')
  t.equal(fateOf('b', 'failed', 'a'), 'remove')
  t.equal(fateOf('b', 'deploying', 'a'), 'underWay')
  t.equal(fateOf('b', undefined, 'a'), 'leave', 'a deployment of somebody else')
  t.equal(fateOf(undefined, undefined, 'a'), 'leave')
  t.equal(fateOf('b', 'success', null), 'stop')
})
