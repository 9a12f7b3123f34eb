import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { rotatingSample } from '../../../scripts/rotating-sample.mjs'
import { rolloutSteps } from '../api.js'
import { killAt, startVictim, survives } from './crash-lab.js'
import { openLab, sample } from './deploy-lab.js'

test('kill -9 of the platform between two steps of a deploy', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openLab()
  t.teardown(() => lab.close())
  const victim = await startVictim(lab)
  const { web, address } = victim

  // What is before a step is in no record: to the next start it is the same as what is after the one before.
  // One that has not begun, the last that fails with a container to take away, and the first that is finished.
  const steps = rotatingSample('kill -9 of the platform between two steps', rolloutSteps, {
    always: ['load', 'prove-healthy', 'switch'],
    others: 1
  })
  for (const step of rolloutSteps.filter(one => steps.has(one))) {
    const isFinished = step === 'load' || rolloutSteps.indexOf(step) >= rolloutSteps.indexOf('switch')
    await t.test(
      `after ${step}: the deploy ${isFinished ? 'is finished' : 'has failed'} at the next start, and one container serves`,
      async t => {
        await survives(
          t,
          victim,
          `killed after ${step}`,
          isFinished,
          async () => await killAt(lab, web, `after ${step}`)
        )
      }
    )
  }

  await t.test('the application can be deployed again after all that', async t => {
    await web.push(sample('at last'))
    t.match(await web.deployed(), { status: 'success' })
    t.equal(await (await fetch(address)).text(), 'at last')
    t.comment(`the slowest start took ${victim.slowestMs} ms to the first answer at the direct address`)
  })
})
