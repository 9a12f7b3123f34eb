import { test } from 'tap'
import { killWithOthers, surviveEngine } from './engine-crash-lab.js'

test('kill -9 of an engine beside a stop of the application or of the platform, whose containers live on', async t => {
  await surviveEngine(t, true, killWithOthers)
})
