import { test } from 'tap'
import { losesEngine } from './engine-lost-lab.js'

test('an engine that is killed ends terminals with their containers', async t => {
  await losesEngine(t, false)
})
