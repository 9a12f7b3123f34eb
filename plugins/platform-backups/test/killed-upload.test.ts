import { readdir } from 'node:fs/promises'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { verifyArchive } from '../archive/archive-reader.js'
import { beginPlatform, ended } from './cli.js'
import { fill } from './faults-kit.js'
import { archives, archivesOf, backUp, runsOf } from './kit.js'

test(
  'a platform that is killed in the middle of an upload leaves no part of it there, and the archive here',
  { timeout: 400_000 },
  async t => {
    const s3 = await startS3Server(t)
    const k = await createTestKernel({})
    t.teardown(() => k.close())
    await k.query(fill(80))
    const admin = await k.as.session()
    const remote = { enabled: true, endpoint: s3.host, bucket: s3Bucket, prefix: 'all/', use_ssl: false }
    t.equal((await admin.put('/api/backups/remote', { ...remote, ...s3Keys })).status, 200)
    await k.holdJobs('platform-backups')
    await admin.post('/api/backups/run', {})
    await k.stop()
    let isStanding = false
    s3.fault = ({ part }) => {
      if (part !== 2) return undefined
      isStanding = true
      return 'silence'
    }
    // The job waits for a platform of its own, which is killed while it sends.
    const platform = beginPlatform({ directory: k.state.directory, databaseUrl: k.state.database.url })
    const over = ended(platform)
    await Promise.race([until(() => isStanding, 'the second part to be sent', 150_000), over])
    platform.kill('SIGKILL')
    await over
    t.equal(s3.uploads().length, 1, 'there is something to be left')
    s3.fault = undefined
    const next = await createTestKernel({ state: k.state })
    t.teardown(() => next.stop())
    const again = await next.as.session()
    const run = await until(
      async () => {
        const [newest] = await runsOf(again)
        return newest?.status === 'running' ? undefined : newest
      },
      'the run to be failed',
      60_000
    )
    t.match(run, {
      status: 'failed',
      error: 'the platform ended while the backup was under way',
      remote_key: null
    })
    await until(() => s3.uploads().length === 0, 'the parts to be removed', 60_000)
    t.equal(s3.objects.size, 0)
    t.ok(
      (await readdir(archivesOf(next))).every(name => !name.endsWith('.part')),
      'nothing is half here'
    )
    const kept = await archives(next)
    t.equal(kept.length, 1)
    t.ok((await verifyArchive({ file: kept[0] ?? '', identity: undefined })).tables.length > 0, 'it is whole')
    t.match(await backUp(again), { status: 'succeeded', remote_key: /^all\// }, 'the next one is uploaded')
    t.equal(s3.objects.size, 1)
  }
)
