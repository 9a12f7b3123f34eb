import { once } from 'node:events'
import { test } from 'tap'
import { systemClock } from '../../../core/clock/clock.js'
import { createLog } from '../../../core/log/log.js'
import { createRedactor } from '../../../core/log/redactor.js'
import { DiskWatch } from '../disk/disk-watch.js'

const mebi = 2 ** 20
const clock = systemClock()
const floorBytes = 200 * mebi

test('what a cancelled build gives back late is not put down to the next one', async t => {
  let freeBytes = 1000 * mebi
  const written = new Map<string, number>()
  const watch = new DiskWatch({
    runtime: {
      buildUsage: async () =>
        [...written].map(([deploymentId, bytes]) => ({ owner: { deploymentId }, bytes, isPartial: false }))
    },
    clock,
    log: createLog({ level: 'silent', format: 'json', redactor: createRedactor() }),
    limits: { floorBytes, buildBytes: 10_000 * mebi },
    disks: async () => [{ what: 'the disk', path: '/', freeBytes, sizeBytes: 2000 * mebi }]
  })
  const watched = (id: string) => {
    const done = new AbortController()
    const ended = watch.during({ id, kind: 'build' }, new AbortController().signal, async signal => {
      await once(AbortSignal.any([signal, done.signal]), 'abort')
      return signal.reason as Error | undefined
    })
    return { ended, finish: () => done.abort() }
  }
  const hog = watched('hog')
  const quiet = watched('quiet')
  written.set('hog', 700 * mebi)
  written.set('quiet', 40 * mebi)
  freeBytes = 150 * mebi
  t.match(await hog.ended, { code: 'E_BUILD_DISK_SHORT' })
  written.delete('hog')
  let isDone = false
  void quiet.ended.then(() => {
    isDone = true
  })
  const looks = performance.now() + 1000
  while (performance.now() < looks && !isDone) await clock.sleep(20)
  t.notOk(isDone, 'the other one goes on while the room comes back')
  freeBytes = 90 * mebi
  t.match(await quiet.ended, { code: 'E_BUILD_DISK_SHORT' }, 'but not below half of the floor')
})
