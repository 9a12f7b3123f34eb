import { test } from 'tap'
import { losesEngine } from './engine-lost-lab.js'

test('an engine that is killed ends terminals also in containers that outlive it', async t => {
  await losesEngine(t, true)
})
