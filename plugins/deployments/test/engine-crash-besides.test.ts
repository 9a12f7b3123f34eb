import { test } from 'tap'
import { killWithOthers, surviveEngine } from './engine-crash-lab.js'

test('kill -9 of an engine beside a stop of the application or of the platform, whose containers go down with it', async t => {
  await surviveEngine(t, false, killWithOthers)
})
