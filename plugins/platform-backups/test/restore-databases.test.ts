import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestKernel, TestClient } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { restore } from '../../backups/test/kit.js'
import { createDatabase, removeAll, runIn, startLab, untilRunning } from '../../databases/test/lab.js'
import { untilEnded } from '../../databases/test/postgres-lab.js'
import { busbar } from './cli.js'
import { archives, backUp, makeKey } from './kit.js'
import { startOldPostgres } from './old-postgres-lab.js'
import { folder } from './original-platform.js'

test(
  'a database comes back on a new machine from its backup in a bucket, with the credentials and files of its project',
  {
    timeout: 600_000
  },
  async t => {
    if (!(await requireDatabaseImages(t))) return
    const old = await startOldPostgres(t)
    if (old === undefined) return
    const s3 = await startS3Server(t)
    const lab = await startLab(t)
    const { k, ann, projectId } = lab
    const made = await createDatabase(lab, { type: 'redis', version: '7' })
    const revealed = (await ann.get(`${made.path}/credentials/reveal`)).body
    const password = revealed.credentials.password as string
    const ask = async (kernel: typeof k, ...words: readonly string[]): Promise<string> =>
      await runIn(kernel, made.id, ['redis-cli', '-h', '127.0.0.1', ...words], { REDISCLI_AUTH: password })
    t.equal(await ask(k, 'set', 'kept', 'correct horse'), 'OK')
    const destination = await ann.post(`/api/projects/${projectId}/backup-destinations`, {
      name: 'Store',
      provider: 'minio',
      endpoint: s3.host,
      bucket: s3Bucket,
      use_ssl: false,
      ...s3Keys
    })
    const config = await ann.post(`${made.path}/backup-configs`, {
      destination_id: destination.body.id,
      schedule: '0 3 * * *'
    })
    t.equal((await ann.post(`${made.path}/backup-configs/${config.body.id}/run`)).status, 202)
    const backup = await untilEnded(ann, made.path, 'backups')
    t.match(backup, { status: 'succeeded', has_remote: true })
    const { body: application } = await ann.post(`/api/projects/${projectId}/applications`, {
      name: 'Web',
      type: 'image',
      build_type: 'image',
      source_image: 'busybox:lab',
      container_port: 8080
    })
    const files = `/api/projects/${projectId}/applications/${application.id}/file-mounts`
    const file = await ann.post(files, { mount_path: '/app/key', content: 'battery', is_secret: true })
    t.equal(file.status, 201)

    const admin = await k.as.session()
    const key = await makeKey(admin)
    t.match(await backUp(admin), { status: 'succeeded' })
    const [archive = ''] = await archives(k)
    // The machine is lost, but for the archive and the bucket.
    await removeAll(k)
    await k.stop()

    const directory = await folder(t)
    const databaseUrl = await old.createDatabase('restored')
    const keyFile = join(directory, '..', `${k.state.directory.split('/').at(-1)}.key`)
    await writeFile(keyFile, `${key}\n`)
    const restored = await busbar(['restore', archive, '--key-file', keyFile], { directory, databaseUrl })
    t.equal(restored.code, 0, restored.stderr)
    const next = await createTestKernel({
      state: { directory, database: { url: databaseUrl, drop: async () => {} } }
    })
    t.teardown(async () => {
      await removeAll(next).catch(() => {})
      await next.close()
    })
    const again = new TestClient(next.url, ann.credential)
    t.match((await again.get(`${made.path}/credentials/reveal`)).body, revealed)
    t.match((await again.get(`${files}/${file.body.id}/reveal`)).body, { content: 'battery' })
    t.equal((await again.post(`${made.path}/reload`)).status, 202)
    await untilRunning(again, made.path)
    t.equal(await ask(next, 'exists', 'kept'), '0', 'its volume was lost')
    t.match(await restore(again, made.path, { backup_id: backup.id }), { status: 'succeeded', error: '' })
    await untilRunning(again, made.path)
    t.equal(await ask(next, 'get', 'kept'), 'correct horse')
  }
)
