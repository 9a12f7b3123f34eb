import { test } from 'tap'
import { surviveEngine } from './engine-crash-lab.js'

test('kill -9 of an engine during a deploy, whose containers live on', async t => {
  await surviveEngine(t, { liveRestore: true })
})
