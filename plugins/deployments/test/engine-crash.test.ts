import { test } from 'tap'
import { surviveEngine } from './engine-crash-lab.js'

test('kill -9 of an engine during a deploy, whose containers go down with it', async t => {
  await surviveEngine(t, { liveRestore: false })
})
