import { test } from 'tap'
import {
  activeStatuses,
  type deploymentStatuses,
  endsBuild,
  isActive,
  nextDeploymentState,
  statesBefore
} from '../records/deployment-state.js'

test('a deployment walks pending, building, deploying, success', async t => {
  t.equal(nextDeploymentState('pending', 'buildBegan'), 'building')
  t.equal(nextDeploymentState('building', 'rolloutBegan'), 'deploying')
  t.equal(nextDeploymentState('deploying', 'succeeded'), 'success')
})

test('a deployment can fail at every step before it has ended', async t => {
  t.same(statesBefore('failed'), ['pending', 'building', 'deploying'])
  t.same(activeStatuses, ['pending', 'building', 'deploying'])
})

test('no stage can be left out or gone back to', async t => {
  t.equal(nextDeploymentState('pending', 'rolloutBegan'), undefined)
  t.equal(nextDeploymentState('pending', 'succeeded'), undefined)
  t.equal(nextDeploymentState('building', 'succeeded'), undefined)
  t.equal(nextDeploymentState('building', 'buildBegan'), undefined)
  t.equal(nextDeploymentState('deploying', 'buildBegan'), undefined)
})

test('a final state never moves', async t => {
  for (const state of ['success', 'failed'] as const) {
    t.notOk(isActive(state))
    for (const progress of ['buildBegan', 'rolloutBegan', 'succeeded', 'failed'] as const)
      t.equal(nextDeploymentState(state, progress), undefined)
  }
})

test('the build ends exactly once on every way through the states', async t => {
  const ways = (state: (typeof deploymentStatuses)[number], ends: number): void => {
    if (!isActive(state)) return void t.equal(ends, 1, state)
    for (const progress of ['buildBegan', 'rolloutBegan', 'succeeded', 'failed'] as const) {
      const next = nextDeploymentState(state, progress)
      if (next !== undefined) ways(next, ends + Number(endsBuild(state, next)))
    }
  }
  ways('pending', 0)
})
