import { test } from 'tap'
import { killAfterSteps, surviveEngine } from './engine-crash-lab.js'

test('kill -9 of an engine between two steps of a deploy, whose containers go down with it', async t => {
  await surviveEngine(t, false, killAfterSteps)
})
