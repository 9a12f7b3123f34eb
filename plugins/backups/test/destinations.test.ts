import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { accessKey, bucket, secretKey, startS3 } from '../../../lab/s3rver.js'
import { LocalStorage } from '../destinations/local-storage.js'
import { S3Storage } from '../destinations/s3-storage.js'
import { provesDestination } from './destination-contract.js'
import {
  backUp,
  contentOf,
  createDatabase,
  createProject,
  filesOf,
  lines,
  openPlatform,
  pathOf,
  restore,
  writeContent
} from './kit.js'

const signal = new AbortController().signal

test('a folder of this machine is a destination', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-local-'))
  t.teardown(async () => await rm(folder, { recursive: true, force: true }))
  await provesDestination(t, async () => new LocalStorage(join(folder, 'not', 'there', 'yet')))
  const storage = new LocalStorage(folder)
  for (const key of ['', '../out', 'a/../../out', 'a\0b'])
    await t.rejects(storage.size(key, { signal }), { name: 'StorageError' }, 'no key leads out of it')
  t.ok(((await storage.free()) ?? 0) > 0)
})

test('a bucket is a destination', { timeout: 120_000 }, async t => {
  const s3 = await startS3Server(t)
  const settings = {
    endpoint: s3.host,
    region: 'us-east-1',
    bucket: s3Bucket,
    useSsl: false,
    accessKey: s3Keys.access_key,
    secretKey: s3Keys.secret_key
  }
  await provesDestination(t, async () => new S3Storage(settings))
  t.same(s3.uploads(), [], 'no upload is left half')

  await t.test('a part that is cut off is sent again', async t => {
    s3.fault = ({ part, number }) => (part !== null && number % 3 === 0 ? 'cut' : undefined)
    const bytes = Buffer.alloc(50_000_000, 'x')
    await new S3Storage(settings).put('cut', once(bytes), { signal })
    s3.fault = undefined
    t.equal(s3.objects.get('cut')?.length, bytes.length)
  })

  await t.test('an upload goes on where it was when the store comes back', async t => {
    // More often than the client of the store tries by itself.
    const cutMost = 7
    let cuts = 0
    s3.fault = ({ part }) => (part === 2 && cuts++ < cutMost ? 'cut' : undefined)
    const before = s3.requests.length
    const bytes = randomBytes(50_000_000)
    await new S3Storage(settings).put('away', once(bytes), { signal })
    s3.fault = undefined
    t.ok(s3.objects.get('away')?.equals(bytes))
    const parts = s3.requests.slice(before).map(({ part }) => part)
    t.equal(parts.filter(part => part === 2).length, cutMost + 1)
    t.equal(parts.filter(part => part === 1).length, 1, 'what was sent is not sent again')
  })

  await t.test('an upload whose last answer is lost is whole', async t => {
    const isLast = ({ method, key, part }: (typeof s3.requests)[number]) =>
      method === 'POST' && key === 'lost' && part === null && s3.uploads().includes('lost')
    let lost = 0
    s3.fault = request => (isLast(request) && lost++ === 0 ? 'lost' : undefined)
    const bytes = randomBytes(20_000_000)
    await new S3Storage(settings).put('lost', once(bytes), { signal })
    s3.fault = undefined
    t.equal(lost, 1)
    t.ok(s3.objects.get('lost')?.equals(bytes))
    t.same(s3.uploads(), [])
  })

  await t.test('what an upload has left half goes with its key', async t => {
    s3.fault = ({ method, part }) => (part === 2 || method === 'DELETE' ? 'refuse' : undefined)
    const storage = new S3Storage(settings)
    await t.rejects(storage.put('left', once(Buffer.alloc(40_000_000)), { signal }))
    s3.fault = undefined
    t.same(s3.uploads(), ['left'])
    await storage.remove('left', { signal })
    t.same(s3.uploads(), [])
  })

  await t.test('a store that is full, refuses, or is away is told in words', async t => {
    const storage = new S3Storage(settings)
    s3.fault = () => 'full'
    await t.rejects(storage.put('full', once(Buffer.alloc(10)), { signal }), /is full/)
    s3.fault = () => 'refuse'
    await t.rejects(storage.put('refused', once(Buffer.alloc(10)), { signal }), /refuses these keys/)
    s3.fault = () => 'cut'
    await t.rejects(storage.test({ signal }), /has cut the connection off/)
    s3.fault = undefined
    await t.rejects(
      new S3Storage({ ...settings, bucket: 'other' }).test({ signal }),
      /there is no bucket other/
    )
    const away = new S3Storage({ ...settings, endpoint: '127.0.0.1:1' })
    await t.rejects(away.test({ signal }), /does not answer/)
  })
})

test('a bucket of a server that was written elsewhere is one too', { timeout: 120_000 }, async t => {
  // All of the contract. Of what `a bucket is a destination` has besides it lacks the faults, and the list of uploads that are half.
  const { host, keys } = await startS3(t)
  const settings = { endpoint: host, region: 'us-east-1', bucket, useSsl: false, accessKey, secretKey }
  await provesDestination(t, async () => new S3Storage(settings))
  t.same(await keys(), ['a/b/file.gz', 'kept', 'replaced'])
  await t.rejects(
    new S3Storage({ ...settings, bucket: 'other' }).test({ signal }),
    /there is no bucket other/
  )
  await t.rejects(
    new S3Storage({ ...settings, accessKey: 'AKIDOFNOBODY' }).test({ signal }),
    /refuses these keys/
  )
})

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

test('without a destination a backup goes to the bucket of the platform, where there is one', async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t)
  const { k, admin, probe, project } = opened
  const remote = { enabled: true, endpoint: s3.host, bucket: s3Bucket, prefix: 'busbar/', use_ssl: false }
  t.equal((await admin.put('/api/backups/remote', { ...remote, ...s3Keys })).status, 200)
  const content = lines(100)
  const id = await createDatabase(opened, 'Central', content)
  const backup = await backUp(admin, pathOf(project, id))
  t.match(backup, {
    status: 'succeeded',
    has_remote: true,
    remote_key: new RegExp(`^busbar/databases/${project}/central-`)
  })
  t.same(await filesOf(k), [])
  t.ok(s3.objects.has(backup.remote_key as string))
  await writeContent(probe, id, 'lost')
  t.match(await restore(admin, pathOf(project, id), { backup_id: backup.id }), { status: 'succeeded' })
  t.equal(await contentOf(probe, id), content)
  t.equal((await admin.delete(`${pathOf(project, id)}/backups/${backup.id}`)).status, 200)
  await until(() => s3.objects.size === 0, 'the file to go')
})

test('destinations of a project', { timeout: 120_000 }, async t => {
  const s3 = await startS3Server(t)
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const project = await createProject(admin, 'Shop')
  const url = `/api/projects/${project}/backup-destinations`
  const good = {
    name: 'Store',
    provider: 'minio',
    endpoint: `http://${s3.host}`,
    bucket: s3Bucket,
    prefix: '/busbar/',
    use_ssl: false,
    ...s3Keys
  }

  await t.test('one is made, told without its keys, tried, changed and deleted', async t => {
    const made = await admin.post(url, good)
    t.match(made, {
      status: 201,
      body: {
        name: 'Store',
        provider: 'minio',
        endpoint: s3.host,
        region: 'us-east-1',
        bucket: s3Bucket,
        prefix: 'busbar',
        use_ssl: false,
        project_id: project
      }
    })
    const { id } = made.body
    t.notOk(JSON.stringify((await admin.get(url)).body).includes(s3Keys.secret_key))
    t.notOk(JSON.stringify(await k.query('select * from backups.destination')).includes(s3Keys.secret_key))
    t.match(await admin.post(`${url}/${id}/test`), { status: 200, body: { ok: true } })
    t.match(await admin.post(url, good), { status: 409, body: { code: 'E_BACKUP_DESTINATION_NAME' } })
    t.match(await admin.put(`${url}/${id}`, { name: 'Cellar', access_key: '', secret_key: '' }), {
      status: 200,
      body: { name: 'Cellar', bucket: s3Bucket }
    })
    t.match(await admin.post(`${url}/${id}/test`), { body: { ok: true } }, 'its keys have stayed')
    t.match(await admin.delete(`${url}/${id}`), { status: 200, body: { status: 'deleted' } })
    t.equal((await admin.get(url)).body.length, 0)
    t.equal((await admin.post(`${url}/${id}/test`)).status, 404)
  })

  await t.test('what was tried with an id may be saved as it is: the id changes nothing', async t => {
    const { id: sent } = (await admin.post(url, { ...good, name: 'Tried' })).body
    const made = await admin.post(url, { ...good, name: 'Saved', id: sent })
    t.equal(made.status, 201)
    t.not(made.body.id, sent)
    t.match(await admin.put(`${url}/${made.body.id}`, { name: 'Changed', id: sent }), {
      status: 200,
      body: { id: made.body.id, name: 'Changed' }
    })
    t.match(
      ((await admin.get(url)).body as any[]).find(({ id }) => id === sent),
      { name: 'Tried' }
    )
  })

  await t.test('stored keys are never sent to another host', async t => {
    const { id } = (await admin.post(url, { ...good, name: 'Moves' })).body
    const other = await startS3Server(t)
    for (const change of [{ endpoint: other.host }, { provider: 's3', endpoint: '' }]) {
      t.match(await admin.put(`${url}/${id}`, change), {
        status: 400,
        body: { code: 'E_BACKUP_DESTINATION_KEYS_AGAIN', field: 'secret_key' }
      })
      t.match(await admin.post(`${url}/test`, { id, ...change }), {
        status: 400,
        body: { code: 'E_BACKUP_DESTINATION_KEYS_AGAIN' }
      })
    }
    t.equal(other.requests.length, 0)
    t.match(await admin.post(`${url}/test`, { id, bucket: 'elsewhere' }), {
      status: 200,
      body: { ok: false, error: /there is no bucket elsewhere/ }
    })
    t.equal((await admin.put(`${url}/${id}`, { endpoint: other.host, ...s3Keys })).status, 200)
  })

  await t.test('what is missing or wrong is told with its field', async t => {
    for (const [body, code, field] of [
      [{ ...good, name: ' ' }, 'E_BACKUP_DESTINATION_FIELD', 'name'],
      [{ ...good, bucket: '' }, 'E_BACKUP_DESTINATION_FIELD', 'bucket'],
      [{ ...good, secret_key: '' }, 'E_BACKUP_DESTINATION_KEYS', 'access_key'],
      [{ ...good, access_key: '', secret_key: '' }, 'E_BACKUP_DESTINATION_KEYS', 'access_key'],
      [{ ...good, endpoint: 's3/../x' }, 'E_BACKUP_DESTINATION_ENDPOINT', 'endpoint'],
      [{ ...good, prefix: 'a/../b' }, 'E_BACKUP_PREFIX', 'prefix'],
      [{ ...good, provider: 'floppy' }, 'E_BACKUP_DESTINATION_PROVIDER', 'provider'],
      [{ ...good, provider: 'r2', endpoint: '' }, 'E_BACKUP_DESTINATION_FIELD', 'endpoint']
    ] as const)
      t.match(await admin.post(url, body), { status: 400, body: { code, field } }, code)
    t.match(await admin.post(`${url}/test`, { ...good, access_key: 'AKIDOFNOBODY' }), {
      body: { ok: false, error: /refuses these keys/ }
    })
    t.match(await admin.post(`${url}/test`, good), { body: { ok: true } })
    s3.fault = () => 'silence'
    t.match(await admin.post(`${url}/test`, good), {
      body: { ok: false, error: /did not answer within 15 s/ }
    })
    s3.fault = undefined
  })

  await t.test('one is of its project alone, and for who may write there', async t => {
    const { id } = (await admin.post(url, { ...good, name: 'Ours' })).body
    const second = await createProject(admin, 'Second')
    const elsewhere = `/api/projects/${second}/backup-destinations`
    t.same((await admin.get(elsewhere)).body, [])
    t.equal((await admin.put(`${elsewhere}/${id}`, { name: 'Theirs' })).status, 404)
    t.equal((await admin.post(`${elsewhere}/${id}/test`)).status, 404)
    t.equal((await admin.delete(`${elsewhere}/${id}`)).status, 404)
    t.equal((await (await k.as.token('read')).get(url)).status, 200)
    t.equal((await (await k.as.token('deploy')).post(url, good)).status, 403)
    t.equal((await (await k.as.session('ann')).get(url)).status, 404)
  })

  await t.test(
    'private hosts are for who is named by the operator, and those of clouds for nobody',
    async t => {
      const other = await createTestKernel({ environment: { BACKUP_PRIVATE_HOSTS: 'deny' } })
      t.teardown(() => other.close())
      const someone = await other.as.session()
      const trial = `/api/projects/${await createProject(someone, 'Shop')}/backup-destinations/test`
      const before = s3.requests.length
      for (const endpoint of [s3.host, s3.host.replace('127.0.0.1', 'localhost')])
        t.match(await someone.post(trial, { ...good, endpoint }), {
          body: { ok: false, error: /a private address: an operator may allow it by BACKUP_PRIVATE_HOSTS/ }
        })
      t.equal(s3.requests.length, before, 'it was not asked')
      t.match(await admin.post(`${url}/test`, { ...good, endpoint: '169.254.169.254' }), {
        body: { ok: false, error: /where clouds hand out credentials/ }
      })
    }
  )

  await t.test('a folder of this machine takes no keys', async t => {
    const made = await admin.post(url, { name: 'Here', provider: 'local' })
    t.match(made, { status: 201, body: { provider: 'local', bucket: '' } })
    t.match(await admin.post(`${url}/${made.body.id}/test`), { body: { ok: true } })
    t.match(await admin.post(`${url}/test`, { provider: 'local' }), { body: { ok: true } })
  })
})
