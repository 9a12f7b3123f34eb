import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer as createHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireRoot } from '../../../lab/requirements.js'
import { busbar } from './cli.js'
import { fill, folder } from './faults-kit.js'
import { archives, backUp, makeKey } from './kit.js'

test('a damaged archive changes nothing, and an abandoned restore neither', { timeout: 280_000 }, async t => {
  const k = await createTestKernel({})
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const key = await makeKey(admin)
  await backUp(admin)
  const [file = ''] = await archives(k)
  await k.stop()
  const directory = await folder(t)
  const damaged = join(directory, 'damaged.age')
  await copyFile(file, damaged)
  const bytes = await readFile(damaged)
  const place = bytes.length >> 1
  bytes.writeUInt8(bytes.readUInt8(place) ^ 4, place)
  await writeFile(damaged, bytes)
  const options = {
    directory: k.state.directory,
    databaseUrl: k.state.database.url,
    environment: { BUSBAR_RECOVERY_KEY: key }
  }
  t.match(await busbar(['restore', damaged, '--replace'], options), {
    code: 1,
    stderr: /damaged or not whole/
  })
  t.equal((await busbar(['restore', '--abandon'], options)).code, 0)
  t.match(await busbar(['restore'], options), { code: 2 })
  t.match(await busbar(['restore', file, '--replace', '--nonsense'], options), { code: 2 })
  const next = await createTestKernel({ state: k.state })
  t.teardown(() => next.stop())
  t.equal((await (await next.as.session()).get('/api/projects')).status, 200)
})

test(
  'a disk that is full fails a backup with what helps, and leaves it as it was',
  { timeout: 280_000 },
  async t => {
    if (!requireRoot(t, 'mounts a small disk')) return
    const disk = await folder(t)
    await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk])
    t.teardown(async () => await promisify(execFile)('umount', [disk]))
    const k = await createTestKernel({ environment: { CONTROL_PLANE_BACKUP_DIR: disk } })
    t.teardown(() => k.close())
    await k.query(fill(20))
    const admin = await k.as.session()
    const run = await backUp(admin)
    t.match(run, { status: 'failed', error: /disk of .* is full: .*make room/ })
    t.same(await readdir(disk), [], 'what was written is gone')
    await k.query('drop table platform_backups.filler')
    t.match(await backUp(admin), { status: 'succeeded' })
  }
)

test(
  'a remote that cuts off or says nothing fails the upload, and the archive stays',
  { timeout: 280_000 },
  async t => {
    let asked = 0
    const server = createHttp((request, response) => {
      asked++
      request.resume()
      response.destroy()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(async () => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    const k = await createTestKernel({
      environment: {
        BACKUP_REMOTE_ENABLED: 'true',
        BACKUP_S3_ENDPOINT: `127.0.0.1:${port}`,
        BACKUP_S3_BUCKET: 'backups',
        BACKUP_S3_USE_SSL: 'false',
        BACKUP_S3_ACCESS_KEY: 'id',
        BACKUP_S3_SECRET_KEY: 'correct horse battery'
      }
    })
    t.teardown(() => k.close())
    const admin = await k.as.session()
    t.match((await admin.get('/api/backups/status')).body, {
      remote_enabled: true,
      remote: { bucket: 'backups' }
    })
    const run = await backUp(admin)
    t.match(run, { status: 'failed', error: /was not uploaded: .*cut the connection off/ })
    t.ok(asked > 1, 'it was tried again')
    t.equal((await archives(k)).length, 1)
  }
)
