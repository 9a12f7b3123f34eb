import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { containerRuntime } from 'busbar/api/containers'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { createProject, ended, pathOf, restore } from './kit.js'

const isThere = existsSync(join(import.meta.dirname, '../../databases/plugin.json'))

test('a real PostgreSQL, in a bucket and back', { timeout: 900_000 }, async t => {
  if (!isThere) {
    t.plan(0, 'the plugin "databases" is not there')
    return
  }
  if (!(await requireEngine(t))) return
  const s3 = await startS3Server(t)
  const k = await createTestKernel()
  const runtime = k.service(containerRuntime)
  t.teardown(async () => {
    for (const { id, owner } of await runtime.list({}))
      if (owner.databaseId !== undefined) await runtime.remove(id, { filesMs: 5000 })
    for (const { id } of await k.query<{ id: string }>('select id from databases.database'))
      for (const { name } of await runtime.volumes({ databaseId: id })) await runtime.removeVolume(name)
    await k.close()
  })
  const admin = await k.as.session()
  const project = await createProject(admin, `Shop${Date.now() % 100_000}`)
  const running = async (path: string) =>
    await until(
      async () => {
        const { body } = await admin.get(path)
        if (body.status === 'failed') throw new Error(`it failed: ${JSON.stringify(body)}`)
        return body.status === 'running' ? body : undefined
      },
      'the database to run',
      120_000
    )
  const create = async (name: string): Promise<string> => {
    const { body } = await admin.post(`/api/projects/${project}/databases`, {
      name,
      type: 'postgres',
      version: '15',
      credentials: { user: 'shop', password: 'correct horse' }
    })
    await running(pathOf(project, body.id))
    return body.id as string
  }
  const sql = async (id: string, text: string): Promise<string> => {
    const [container] = await runtime.list({ databaseId: id })
    const said: string[] = []
    const code = await runtime.exec(
      container?.id ?? '',
      ['psql', '-h', '127.0.0.1', '-U', 'shop', '-d', 'shopdb', '-A', '-t', '-c', text],
      {
        env: { PGPASSWORD: 'correct horse' },
        onLine: line => {
          said.push(line.text)
        },
        signal: new AbortController().signal
      }
    )
    if (code !== 0) throw new Error(said.join('\n'))
    return said.join('\n')
  }
  const id = await create('shopdb')
  const path = pathOf(project, id)
  await sql(id, 'create table kept (n integer primary key, word text)')
  await sql(id, 'insert into kept select i, md5(i::text) from generate_series(1, 200000) i')
  const sum = await sql(id, 'select count(*), sum(n) from kept')
  const destination = await admin.post(`/api/projects/${project}/backup-destinations`, {
    name: 'Store',
    provider: 'minio',
    endpoint: s3.host,
    bucket: s3Bucket,
    use_ssl: false,
    ...s3Keys
  })
  const config = await admin.post(`${path}/backup-configs`, {
    destination_id: destination.body.id,
    schedule: '0 3 * * *'
  })
  t.equal((await admin.post(`${path}/backup-configs/${config.body.id}/run`)).status, 202)
  const backup = await ended(admin, `${path}/backups`)
  t.match(backup, { status: 'succeeded', has_remote: true, error: '' })

  await t.test('it is proven by a drill, which touches nothing', async t => {
    t.equal((await admin.post(`${path}/backups/${backup.id}/check`)).status, 202)
    const proof = await until(
      async () => {
        const [newest] = (await admin.get(`${path}/backups`)).body
        return newest.proof.status === 'running' ? undefined : newest.proof
      },
      'the drill to end',
      120_000
    )
    t.match(proof, { status: 'proven', error: null })
    t.ok(proof.rows >= 200_000, String(proof.rows))
  })

  await t.test('what was lost comes back', async t => {
    await sql(id, 'drop table kept')
    const restored = await restore(admin, path, { backup_id: backup.id })
    t.match(restored, { status: 'succeeded', error: '' })
    await running(path)
    t.equal(await sql(id, 'select count(*), sum(n) from kept'), sum)
  })

  await t.test('it is restored while it is stopped, and is stopped again', async t => {
    await sql(id, 'delete from kept')
    t.equal((await admin.post(`${path}/stop`)).status, 200)
    t.match(await admin.post(`${path}/backups`), { status: 409 })
    t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'succeeded' })
    t.equal((await admin.get(path)).body.status, 'stopped')
    t.equal((await admin.post(`${path}/start`)).status, 200)
    await running(path)
    await until(async () => await sql(id, 'select 1').catch(() => undefined), 'the server to answer')
    t.equal(await sql(id, 'select count(*), sum(n) from kept'), sum)
  })

  await t.test('a damaged file changes nothing', async t => {
    const key = backup.remote_key as string
    const good = s3.objects.get(key) ?? Buffer.alloc(0)
    const bad = Buffer.from(good)
    bad.writeUInt8(bad.readUInt8(good.length >> 1) ^ 1, good.length >> 1)
    s3.replace(key, bad)
    t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'failed', error: /is damaged/ })
    s3.replace(key, good)
    t.equal(await sql(id, 'select count(*), sum(n) from kept'), sum)
  })

  await t.test('after it was deleted it is made again with what it had', async t => {
    t.equal((await admin.delete(path)).status, 200)
    await until(async () => (await admin.get(path)).status === 404, 'it to be gone', 60_000)
    const url = `/api/projects/${project}/orphaned-backups`
    const orphans = await until(async () => {
      const { body } = await admin.get(url)
      return body.length > 0 ? body : undefined
    }, 'its backup to be an orphaned one')
    t.match(orphans, [{ id: backup.id, database_type: 'postgres' }])
    const made = await until(
      async () => {
        const answer = await admin.post(`${url}/${backup.id}/restore`)
        // The name is free when all of it is gone.
        return answer.status === 409 ? undefined : answer
      },
      'its name to be free',
      60_000
    )
    t.match(made, { status: 202, body: { type: 'postgres', version: '15' } })
    const fresh = pathOf(project, made.body.id)
    const restored = await until(
      async () => {
        const [newest] = (await admin.get(`${fresh}/restores`)).body
        return newest === undefined || newest.status === 'running' ? undefined : newest
      },
      'the restore to end',
      120_000
    )
    t.match(restored, { status: 'succeeded', error: '' })
    await running(fresh)
    t.equal(await sql(made.body.id, 'select count(*), sum(n) from kept'), sum)
  })
})
