import { readFile, stat } from 'node:fs/promises'
import { createTestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { accessKey, bucket, secretKey, startS3 } from '../../../lab/s3rver.js'
import { verifyArchive } from '../archive/archive-reader.js'
import { archives, backUp, ended, makeKey, runsOf } from './kit.js'

test('backups of the platform', { timeout: 280_000 }, async t => {
  const clock = testClock('2026-11-28T12:00:00Z')
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const admin = await k.as.session()

  await t.test('before the first one, the warnings say what is missing', async t => {
    const { body } = await admin.get('/api/backups/status')
    t.same(body, {
      last_succeeded_at: null,
      last_attempted_at: null,
      last_error: null,
      remote_enabled: false,
      remote: null,
      retention: { days: 30, count: 14 },
      encryption_enabled: false,
      encryption_recipient: null
    })
    const codes = (await admin.get('/api/stats')).body.config_warnings.map(
      ({ code }: { code: string }) => code
    )
    for (const code of ['no_recovery_key', 'no_platform_backup']) t.ok(codes.includes(code), code)
  })

  await t.test(
    'without a recovery key the archive is not encrypted, and says that the keys are not in it',
    async t => {
      const run = await backUp(admin)
      t.match(run, { status: 'succeeded', encrypted: false, error: null, remote_key: null })
      t.match(run.log, /keys of the installation are not in it/)
      const [file = ''] = await archives(k)
      t.equal((await stat(file)).size, run.size_bytes)
      t.equal((await stat(file)).mode & 0o777, 0o600)
      const manifest = await verifyArchive({ file, identity: undefined })
      t.equal(manifest.keys, null)
      t.ok(manifest.tables.some(({ schema, table }) => schema === 'identity' && table === 'user'))
      t.ok(manifest.catalog.schemas.includes('graphile_worker'))
    }
  )

  await t.test('the recovery key is shown once, to a session', async t => {
    t.equal((await (await k.as.token('write')).post('/api/backups/recovery-key', {})).status, 403)
    const identity = await makeKey(admin)
    t.match(identity, /^AGE-SECRET-KEY-1/)
    const again = await admin.post('/api/backups/recovery-key', {})
    t.match(again, { status: 409, body: { code: 'E_RECOVERY_KEY_EXISTS' } })
    const known = (await admin.get('/api/backups/recovery-key')).body
    t.match(known, { recipient: /^age1/ })
    t.notOk(JSON.stringify(await k.query('select * from platform_backups.recovery_key')).includes(identity))
    await clock.advance(1000)
    const run = await backUp(admin)
    t.match(run, { status: 'succeeded', encrypted: true })
    const file = (await archives(k)).at(-1) ?? ''
    t.match(await verifyArchive({ file, identity }), { keys: { pieces: 1 } })
    const bytes = await readFile(file)
    t.notOk(bytes.includes('identity'), 'nothing of it can be read')
    t.match((await admin.get('/api/backups/status')).body, {
      encryption_enabled: true,
      encryption_recipient: known.recipient,
      last_error: null
    })
    t.match(await admin.post('/api/backups/recovery-key', { replace: true }), { status: 201 })
    t.not((await admin.get('/api/backups/recovery-key')).body.recipient, known.recipient)
  })

  await t.test('one runs at a time', async t => {
    await clock.advance(1000)
    await k.holdJobs('platform-backups')
    t.match(await admin.post('/api/backups/run', {}), { status: 202, body: { status: 'queued' } })
    t.match(await admin.post('/api/backups/run', {}), {
      status: 409,
      body: { error: 'a backup is already in progress' }
    })
    t.match((await runsOf(admin))[0], { status: 'running', finished_at: null, size_bytes: 0 })
    await k.reload('platform-backups')
    t.match(await ended(admin), { status: 'succeeded' })
  })

  await t.test('a run whose process has died is failed, and admins are told', async t => {
    await k.query(
      `insert into platform_backups.run (id, started_at, begun_at, status) values (gen_random_uuid(), $1, $1, 'running')`,
      [new Date(clock.now().getTime() + 1000)]
    )
    await clock.advance(2000)
    await k.reload('platform-backups')
    const run = await ended(admin)
    t.match(run, { status: 'failed', error: 'the platform ended while the backup was under way' })
    const told = await until(async () => {
      const { body } = await admin.get('/api/notifications')
      return body.items.find(({ type }: { type: string }) => type === 'platform.backup_failed')
    }, 'the notification')
    t.match(told, { title: 'The backup of the platform failed', body: run.error })
    t.match(
      (await admin.get('/api/notification-events')).body.find(
        ({ type }: { type: string }) => type === 'platform.backup_failed'
      ),
      { severity: 'error' }
    )
    t.equal((await admin.get('/api/stats')).body.needs_attention.failed_backups, 1)
    await clock.advance(1000)
    t.match((await backUp(admin)).status, 'succeeded')
    t.equal((await admin.get('/api/stats')).body.needs_attention.failed_backups, 0)
  })

  await t.test('runs are listed newest first, in pages', async t => {
    const all = await runsOf(admin)
    t.ok(all.length >= 4)
    const page = await admin.get('/api/backups?limit=1&offset=1')
    t.same(page.body, all.slice(1, 2))
    t.equal(page.headers['x-total-count'], String(all.length))
  })

  await t.test('members and narrower tokens are not let in', async t => {
    const member = await k.as.session('member')
    for (const path of ['/api/backups', '/api/backups/status', '/api/backups/recovery-key'])
      t.equal((await member.get(path)).status, 403)
    t.equal((await (await k.as.token('read')).post('/api/backups/run', {})).status, 403)
  })

  await t.test('archives that have had their time are removed', async t => {
    await k.configure('platform-backups', { retain_days: 1, retain_count: 2 })
    const writer = await k.as.token('write')
    clock.set(3 * 86_400_000)
    k.resetRateLimits()
    await backUp(writer)
    t.equal((await archives(k)).length, 2)
  })
})

test('the remote', { timeout: 280_000 }, async t => {
  const s3 = await startS3(t)
  const clock = testClock('2026-11-28T12:00:00Z')
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const writer = await k.as.token('write')
  const settings = {
    enabled: true,
    endpoint: s3.host,
    region: 'us-east-1',
    bucket,
    prefix: 'busbar/',
    use_ssl: false,
    access_key: accessKey,
    secret_key: secretKey
  }

  await t.test('it is tested before it is saved, and saved without showing its keys', async t => {
    t.match(await admin.post('/api/backups/test', {}), {
      status: 400,
      body: { code: 'E_PLATFORM_BACKUP_REMOTE_OFF' }
    })
    t.match(await admin.put('/api/backups/remote', { enabled: true }), {
      status: 400,
      body: { field: 'bucket' }
    })
    t.match(await admin.put('/api/backups/remote', { enabled: true, bucket }), { status: 400 })
    t.same((await admin.post('/api/backups/remote/test', settings)).body, { ok: true })
    const wrong = await admin.post('/api/backups/remote/test', { ...settings, bucket: 'nothing' })
    t.match(wrong, { status: 200, body: { ok: false, error: /no bucket nothing/ } })
    const away = await admin.post('/api/backups/remote/test', { ...settings, endpoint: '127.0.0.1:1' })
    t.match(away, { status: 200, body: { ok: false, error: /does not answer/ } })
    t.match(await admin.put('/api/backups/remote', { ...settings, endpoint: 'a b' }), { status: 400 })
    const { access_key: _id, secret_key: _secret, enabled: _enabled, ...view } = settings
    const saved = await admin.put('/api/backups/remote', settings)
    t.same(saved.body, { remote: view, status: 'updated' })
    t.match(await admin.post('/api/backups/test', {}), { status: 200, body: { status: 'ok' } })
    const { body } = await admin.get('/api/backups/status')
    t.match(body, { remote_enabled: true, remote: view })
    const [row] = await k.query<{ secret_key: string }>('select secret_key from platform_backups.remote')
    t.match(row?.secret_key, /^b1\./)
    await admin.put('/api/backups/remote', { prefix: 'busbar/' })
    t.match(await admin.post('/api/backups/test', {}), { status: 200 }, 'keys that are left out stay')
  })

  await t.test('archives are uploaded, and go there too when they have had their time', async t => {
    await k.configure('platform-backups', { retain_days: 1, retain_count: 1 })
    const run = await backUp(admin)
    t.match(run, { status: 'succeeded', remote_key: /^busbar\/busbar-backup-.*\.tar\.gz$/ })
    t.same(await s3.keys(), [run.remote_key])
    clock.set(5 * 86_400_000)
    k.resetRateLimits()
    const next = await backUp(writer)
    t.same(await s3.keys(), [next.remote_key])
  })

  await t.test('where the store fails, the archive stays here and the run says so', async t => {
    await writer.put('/api/backups/remote', { bucket: 'nothing' })
    t.match(await writer.post('/api/backups/test', {}), { status: 502, body: { error: /no bucket nothing/ } })
    await clock.advance(1000)
    const run = await backUp(writer)
    t.match(run, {
      status: 'failed',
      error: /was not uploaded: there is no bucket nothing/,
      remote_key: null
    })
    t.ok(run.size_bytes > 0)
    t.equal((await archives(k)).length, 2)
  })
})

test('a schedule that cannot be read, or is never due, makes the plugin misconfigured, and says why', async t => {
  const k = await createTestKernel({})
  t.teardown(() => k.close())
  const admin = await k.as.session()
  for (const schedule of ['at night', '0 0 30 2 *']) {
    const refused = await admin.put('/api/plugins/platform-backups/config', { schedule })
    t.ok(refused.status >= 400, JSON.stringify(refused.body))
    t.match(JSON.stringify(refused.body), /schedule/)
  }
  t.equal((await admin.put('/api/plugins/platform-backups/config', { enabled: false })).status, 200)
  t.same(await k.query(`select from kernel.schedule where plugin = 'platform-backups'`), [])
})
