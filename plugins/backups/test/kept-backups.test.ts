import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import {
  backUp,
  contentOf,
  createDatabase,
  createProject,
  ended,
  lines,
  type Opened,
  openPlatform,
  pathOf,
  restore,
  writeContent
} from './kit.js'

/** A schedule at a destination; makes a backup as it would. */
async function scheduled(
  { admin }: Pick<Opened, 'admin'>,
  {
    project,
    path,
    destination
  }: { readonly project: string; readonly path: string; readonly destination: object }
) {
  const made = await admin.post(`/api/projects/${project}/backup-destinations`, destination)
  const config = await admin.post(`${path}/backup-configs`, {
    destination_id: made.body.id,
    schedule: '0 3 1 1 *'
  })
  if (config.status !== 201) throw new Error(`no schedule: ${JSON.stringify([made.body, config.body])}`)
  return {
    id: config.body.id as string,
    run: async () => {
      const { status } = await admin.post(`${path}/backup-configs/${config.body.id}/run`)
      if (status !== 202) throw new Error(`no backup: ${status}`)
      return await ended(admin, `${path}/backups`)
    }
  }
}

test('two backups of one second never have one file', { timeout: 120_000 }, async t => {
  const s3 = await startS3Server(t)
  const opened = await openPlatform(t, { clock: testClock() })
  const { k, admin, probe, project } = opened
  const store = (name: string) => ({
    name,
    provider: 'minio',
    endpoint: s3.host,
    bucket: s3Bucket,
    use_ssl: false,
    ...s3Keys
  })

  await t.test('of two projects with one bucket', async t => {
    const other = await createProject(admin, 'Other')
    const made = []
    for (const [owner, content] of [
      [project, lines(100)],
      [other, lines(200)]
    ] as const) {
      const id = await createDatabase({ k, probe, project: owner }, 'Same', content)
      const path = pathOf(owner, id)
      const { run } = await scheduled(opened, { project: owner, path, destination: store('Bucket') })
      made.push({ id, path, content, backup: await run() })
    }
    t.equal(s3.objects.size, 2, [...s3.objects.keys()].join(', '))
    for (const { id, path, content, backup } of made) {
      t.match(backup, { status: 'succeeded' })
      await writeContent(probe, id, 'lost\n')
      t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'succeeded' })
      t.equal(await contentOf(probe, id), content)
    }
  })

  await t.test('of one database at two destinations that lead to one place', async t => {
    const id = await createDatabase(opened, 'Twice', lines(100))
    const path = pathOf(project, id)
    const first = await scheduled(opened, { project, path, destination: { name: 'Here', provider: 'local' } })
    const second = await scheduled(opened, {
      project,
      path,
      destination: { name: 'Again', provider: 'local' }
    })
    const schedule = (id: string) => `${path}/backup-configs/${id}/run`
    const made: Array<{ readonly content: string; readonly backup: { readonly id: string } }> = []
    for (const url of [schedule(first.id), schedule(second.id), `${path}/backups`]) {
      const content = lines(50)
      await writeContent(probe, id, content)
      t.equal((await admin.post(url)).status, 202)
      // The clock stands still: the newest of the list is any of them.
      const backup = await until(async () => {
        const all: Array<{ id: string; status: string }> = (await admin.get(`${path}/backups`)).body
        return all.some(({ status }) => status === 'running')
          ? undefined
          : all.find(one => made.every(({ backup: { id: known } }) => known !== one.id))
      }, 'the backup to end')
      t.match(backup, { status: 'succeeded' })
      made.push({ content, backup })
    }
    for (const { content, backup } of made) {
      t.equal((await admin.post(`${path}/restore`, { backup_id: backup.id })).status, 202)
      await until(
        async () =>
          (await admin.get(`${path}/restores`)).body.every(
            ({ status }: { status: string }) => status !== 'running'
          ),
        'the restore to end'
      )
      t.equal(await contentOf(probe, id), content)
    }
  })

  await t.test('and a file that somebody else has put there stays', async t => {
    const id = await createDatabase(opened, 'Foreign', lines(10))
    const path = pathOf(project, id)
    const { run } = await scheduled(opened, { project, path, destination: store('Foreign') })
    const first = await run()
    const key = first.remote_key as string
    await admin.delete(`${path}/backups/${first.id}`)
    await until(() => !s3.objects.has(key), 'the first file to go')
    s3.replace(key, Buffer.from('of another installation'))
    t.match(await run(), { status: 'succeeded' })
    t.equal(s3.objects.get(key)?.toString(), 'of another installation')
  })
})

test(
  'backups of a schedule that was deleted are not counted with those by hand',
  { timeout: 60_000 },
  async t => {
    const opened = await openPlatform(t, { environment: { DATABASE_BACKUP_RETAIN_COUNT: '1' } })
    const { admin, project } = opened
    const path = pathOf(project, await createDatabase(opened, 'Kept', lines(10)))
    const { id, run } = await scheduled(opened, {
      project,
      path,
      destination: { name: 'Here', provider: 'local' }
    })
    const kept = [await run(), await run(), await run()].map(one => one.id)
    t.equal((await admin.delete(`${path}/backup-configs/${id}`)).status, 200)
    const first = await backUp(admin, path)
    const last = await backUp(admin, path)
    const listed = async (): Promise<string[]> =>
      (await admin.get(`${path}/backups`)).body.map((one: { id: string }) => one.id)
    // Old ones go behind the end of a run.
    await until(async () => !(await listed()).includes(first.id), 'the first one by hand to go')
    t.same((await listed()).sort(), [...kept, last.id].sort())
  }
)
