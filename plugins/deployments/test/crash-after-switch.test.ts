import { test } from 'tap'
import { rolloutSteps } from '../api.js'
import { survivesDuring } from './crash-within-lab.js'

const title = 'kill -9 of the platform in the middle of the switch of a deploy or of a step after it'

test(title, async t => {
  // Two names that change.
  await survivesDuring(t, title, rolloutSteps.slice(rolloutSteps.indexOf('switch')), {
    always: ['switch'],
    others: 1
  })
})
