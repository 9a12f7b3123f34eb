import { test } from 'tap'
import { killAfterSteps, surviveEngine } from './engine-crash-lab.js'

test('kill -9 of an engine between two steps of a deploy, whose containers live on', async t => {
  await surviveEngine(t, true, killAfterSteps)
})
