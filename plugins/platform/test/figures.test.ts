import { test } from 'tap'
import { appHealth, containerStats, deployStats, nothing } from '../figures.js'

const counts = { running: 5, unhealthy: 1, errored: 2, stopped: 3, inactive: 4 }

test('an application that is being deployed and of which no version runs is busy, and each counts once', t => {
  const health = appHealth(counts, { errored: 1, stopped: 0, inactive: 4 })
  t.same(health, { running: 5, unhealthy: 1, errored: 1, stopped: 3, inactive: 0, busy: 5, total: 15 })
  const { total, ...each } = health
  t.equal(
    Object.values(each).reduce((sum, count) => sum + count, 0),
    total
  )
  t.end()
})

test('what was counted a moment later makes no number negative', t => {
  const health = appHealth(nothing, { errored: 1, stopped: 1, inactive: 1 })
  t.same(health, { running: 0, unhealthy: 0, errored: 0, stopped: 0, inactive: 0, busy: 0, total: 0 })
  t.end()
})

test('containers are those that were ever started, by kind and together', t => {
  t.same(
    containerStats([
      ['application', counts],
      ['database', { ...nothing, running: 1, stopped: 1 }]
    ]),
    {
      running: 7,
      stopped: 4,
      error: 2,
      total: 13,
      by_type: { application: { running: 6, total: 11 }, database: { running: 1, total: 2 } }
    }
  )
  t.same(containerStats([]), { running: 0, stopped: 0, error: 0, total: 0, by_type: {} })
  t.end()
})

test('deployments that have ended are counted together', t => {
  t.same(deployStats({ succeeded: 3, failed: 2, medianBuildMs: 1500 }), {
    succeeded: 3,
    failed: 2,
    total: 5,
    median_build_ms: 1500
  })
  t.end()
})
