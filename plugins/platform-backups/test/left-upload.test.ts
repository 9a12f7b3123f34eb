import { createTestKernel, type TestClient, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type S3Server, s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { fill } from './faults-kit.js'
import { backUp, ended } from './kit.js'

const removesNothing = ({ method }: { readonly method: string }) =>
  method === 'DELETE' ? ('refuse' as const) : undefined

async function uploadTo(t: Test, s3: S3Server, admin: TestClient): Promise<void> {
  const remote = { enabled: true, endpoint: s3.host, bucket: s3Bucket, prefix: 'all/', use_ssl: false }
  t.equal((await admin.put('/api/backups/remote', { ...remote, ...s3Keys })).status, 200)
}

test(
  'parts of an upload that a stop cut off, of a store that removed none then, are gone when it has begun again',
  { timeout: 400_000 },
  async t => {
    const s3 = await startS3Server(t)
    const k = await createTestKernel({})
    t.teardown(() => k.close())
    await k.query(fill(80))
    const admin = await k.as.session()
    await uploadTo(t, s3, admin)
    let isStanding = false
    s3.fault = request => {
      if (request.part !== 2) return removesNothing(request)
      isStanding = true
      return 'silence'
    }
    await admin.post('/api/backups/run', {})
    await until(() => isStanding, 'the second part to be sent', 150_000)
    await k.stop()
    const [left] = s3.uploads()
    t.ok(left, 'there is something left')
    s3.fault = undefined
    const next = await createTestKernel({ state: k.state })
    t.teardown(() => next.stop())
    const again = await next.as.session()
    const run = await until(() => ended(again).catch(() => undefined), 'the run to end', 200_000)
    t.match(run, { status: 'succeeded', error: null, remote_key: /^all\// })
    t.ok(s3.objects.has(String(run.remote_key)))
    t.same(s3.uploads(), [], 'no part is left')
  }
)

test(
  'parts of an upload that failed, of a store that removed none then, are gone with the next one',
  { timeout: 400_000 },
  async t => {
    const s3 = await startS3Server(t)
    const k = await createTestKernel({})
    t.teardown(() => k.close())
    await k.query(fill(80))
    const admin = await k.as.session()
    await uploadTo(t, s3, admin)
    s3.fault = request => (request.part === 2 ? 'full' : removesNothing(request))
    t.match(await backUp(admin), { status: 'failed', error: /is full/, remote_key: null })
    t.equal(s3.uploads().length, 1, 'there is something left')
    s3.fault = undefined
    t.match(await backUp(admin), { status: 'succeeded' })
    t.same(s3.uploads(), [])
    t.same(await k.query('select * from platform_backups.left_upload'), [], 'and nothing is looked for')
  }
)
