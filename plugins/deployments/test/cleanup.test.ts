import { test } from 'tap'
import { roleOf } from '../cleanup.js'

test('label and record decide the role of a container', async t => {
  t.equal(roleOf('a', 'success', 'a'), 'serving')
  t.equal(roleOf('b', 'success', 'a'), 'retired', 'it served once and stops with grace')
  t.equal(roleOf('b', 'failed', 'a'), 'failed')
  t.equal(roleOf('b', 'deploying', 'a'), 'in-progress')
  t.equal(roleOf('b', undefined, 'a'), 'foreign', 'a deployment of another installation')
  t.equal(roleOf(undefined, undefined, 'a'), 'foreign')
  t.equal(roleOf('b', 'success', null), 'retired')
})
