import { createTestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type S3Server, s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'

const again = {
  status: 400,
  body: { code: 'E_PLATFORM_BACKUP_KEYS_AGAIN', field: 'secret_key' }
}

/** Changes that would send keys somewhere else. */
const movesTo = ({ host }: S3Server) => [
  { endpoint: host },
  { endpoint: host, access_key: '', secret_key: '' },
  { endpoint: host, access_key: s3Keys.access_key },
  { endpoint: host, secret_key: s3Keys.secret_key },
  { endpoint: host, enabled: false },
  { endpoint: '' },
  { endpoint: '', region: 'example.com/' }
]

async function startStores(t: Test) {
  const [ours, theirs] = [await startS3Server(t), await startS3Server(t)]
  return { ours, theirs }
}

test('stored keys of the remote are never sent to another host', { timeout: 120_000 }, async t => {
  const { ours, theirs } = await startStores(t)
  const k = await createTestKernel({})
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const writer = await k.as.token('write')
  const settings = { endpoint: ours.host, bucket: s3Bucket, use_ssl: false, ...s3Keys }
  t.match(await admin.put('/api/backups/remote', { enabled: true, bucket: s3Bucket }), {
    status: 400,
    body: { code: 'E_PLATFORM_BACKUP_KEYS', field: 'access_key' }
  })
  t.match(
    await admin.put('/api/backups/remote', { endpoint: theirs.host, bucket: s3Bucket }),
    { status: 200 },
    'where there are no keys, none go elsewhere'
  )
  t.equal((await admin.put('/api/backups/remote', { ...settings, enabled: true })).status, 200)
  for (const change of movesTo(theirs)) {
    t.match(await writer.put('/api/backups/remote', change), again, JSON.stringify(change))
    t.match(await writer.post('/api/backups/remote/test', change), again, JSON.stringify(change))
    k.resetRateLimits()
  }
  t.same(theirs.requests, [])
  t.match((await admin.get('/api/backups/status')).body, {
    remote_enabled: true,
    remote: { endpoint: ours.host }
  })
  t.match(await writer.post('/api/backups/remote/test', { bucket: 'elsewhere' }), {
    status: 200,
    body: { ok: false, error: /there is no bucket elsewhere/ }
  })
  t.equal((await writer.put('/api/backups/remote', { endpoint: `http://${ours.host}` })).status, 200)
  t.match(await writer.put('/api/backups/remote', { use_ssl: true }), { status: 200 })
  t.match(await writer.put('/api/backups/remote', { use_ssl: false }), again, 'nor in clear')
  t.equal((await writer.put('/api/backups/remote', { ...settings, endpoint: theirs.host })).status, 200)
  t.match(await writer.post('/api/backups/test', {}), { status: 200 }, 'with keys of its own it moves')
})

test('keys of the environment are sent to no other host either', { timeout: 120_000 }, async t => {
  const { ours, theirs } = await startStores(t)
  const k = await createTestKernel({
    environment: {
      BACKUP_REMOTE_ENABLED: 'true',
      BACKUP_S3_ENDPOINT: ours.host,
      BACKUP_S3_BUCKET: s3Bucket,
      BACKUP_S3_USE_SSL: 'false',
      BACKUP_S3_ACCESS_KEY: s3Keys.access_key,
      BACKUP_S3_SECRET_KEY: s3Keys.secret_key
    }
  })
  t.teardown(() => k.close())
  const writer = await k.as.token('write')
  t.match(await writer.post('/api/backups/test', {}), { status: 200 })
  for (const change of movesTo(theirs)) {
    t.match(await writer.put('/api/backups/remote', change), again, JSON.stringify(change))
    t.match(await writer.post('/api/backups/remote/test', change), again, JSON.stringify(change))
    k.resetRateLimits()
  }
  t.same(theirs.requests, [])
  t.match(await writer.post('/api/backups/test', {}), { status: 200 }, 'nothing has changed')
  t.match(await writer.put('/api/backups/remote', { prefix: 'other/' }), { status: 200 }, 'the rest may')
})
