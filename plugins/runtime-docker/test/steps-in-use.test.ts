import { test } from 'tap'
import { StepsInUse } from '../steps-in-use.js'

const step = (id: string, second: number, applicationId = 'own') => ({
  id: `sha256:${id.padEnd(64, '0')}`,
  createdAt: new Date(second * 1000),
  applicationId
})

test('a build goes on from what the engine has told of, and from all that it has made itself', t => {
  const steps = new StepsInUse('own')
  t.equal(steps.includes(step('1', 10)), false)
  steps.begin(new Date(5_600))
  t.equal(steps.includes(step('1', 5)), true, 'the engine knows seconds')
  t.equal(steps.includes(step('1', 4)), false)
  t.equal(steps.includes(step('1', 10, 'other')), false, 'what others have made since is theirs')
  steps.read(' ---> 0123456789ab\n')
  steps.read('---> ba9876543210\n')
  t.equal(steps.includes(step('0123456789ab', 1)), true)
  t.equal(steps.includes(step('ba9876543210', 1)), false)
  t.end()
})

test('of many words of a step the newest are kept', t => {
  const steps = new StepsInUse('own')
  const id = (index: number): string => index.toString(16).padStart(12, '0')
  for (let index = 0; index < 5000; index++) steps.read(` ---> ${id(index)}\n`)
  t.equal(steps.includes(step(id(4999), 0)), true)
  t.equal(steps.includes(step(id(0), 0)), false)
  t.end()
})
