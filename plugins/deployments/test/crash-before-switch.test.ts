import { test } from 'tap'
import { rolloutSteps } from '../api.js'
import { survivesDuring } from './crash-within-lab.js'

const title = 'kill -9 of the platform in the middle of a step of a deploy before the switch'

test(title, async t => {
  // What a build leaves, and a container that is not proven.
  await survivesDuring(t, title, rolloutSteps.slice(0, rolloutSteps.indexOf('switch')), {
    always: ['build', 'proof by port'],
    others: 1
  })
})
