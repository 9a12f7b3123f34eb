import { readdir } from 'node:fs/promises'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { beginPlatform, ended } from './cli.js'
import { fill } from './faults-kit.js'
import { archivesOf, backUp } from './kit.js'

test(
  'a platform that is killed in the middle of a backup fails it at the next start, and leaves nothing half',
  {
    timeout: 280_000
  },
  async t => {
    const k = await createTestKernel({})
    t.teardown(() => k.close())
    await k.query(fill(60))
    const admin = await k.as.session()
    await k.holdJobs('platform-backups')
    await admin.post('/api/backups/run', {})
    await k.stop()
    // The job waits for a platform of its own, which is killed while it writes.
    const platform = beginPlatform({ directory: k.state.directory, databaseUrl: k.state.database.url })
    const over = ended(platform)
    await until(
      async () => (await readdir(archivesOf(k)).catch(() => [])).some(name => name.endsWith('.part')),
      'the archive to be begun',
      60_000
    )
    platform.kill('SIGKILL')
    await over
    t.ok(
      (await readdir(archivesOf(k))).some(name => name.endsWith('.part')),
      'it was killed while it wrote'
    )
    const next = await createTestKernel({ state: k.state })
    t.teardown(() => next.stop())
    const again = await next.as.session()
    const run = await until(async () => {
      const [first] = (await again.get('/api/backups')).body
      return first.status === 'running' ? undefined : first
    }, 'the run to be failed')
    t.match(run, { status: 'failed', error: 'the platform ended while the backup was under way' })
    await until(
      async () => (await readdir(archivesOf(next))).every(name => !name.endsWith('.part')),
      'what it left half to be removed'
    )
    t.match(await backUp(again), { status: 'succeeded' }, 'the next one is made')
  }
)
