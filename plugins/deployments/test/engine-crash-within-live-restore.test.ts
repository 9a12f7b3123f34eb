import { test } from 'tap'
import { killDuringSteps, surviveEngine } from './engine-crash-lab.js'

test('kill -9 of an engine in the middle of a step of a deploy, whose containers live on', async t => {
  await surviveEngine(t, true, killDuringSteps)
})
