import { readdir } from 'node:fs/promises'
import { createDatabase, createTestKernel, testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { busbar } from './cli.js'
import { withClient } from './faults-kit.js'
import { backUp, makeKey } from './kit.js'
import { folder } from './original-platform.js'

/** A platform with the project Shop in its first archive, and Later in its second one too; both are in the bucket. */
async function twoArchives(t: Test) {
  const s3 = await startS3Server(t)
  const clock = testClock('2026-11-28T12:00:00Z')
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const key = await makeKey(admin)
  const remote = { enabled: true, endpoint: s3.host, bucket: s3Bucket, prefix: 'all/', use_ssl: false }
  t.equal((await admin.put('/api/backups/remote', { ...remote, ...s3Keys })).status, 200)
  const names: string[] = []
  for (const name of ['Shop', 'Later']) {
    await admin.post('/api/projects', { name, slug: name.toLowerCase() })
    const run = await backUp(admin)
    t.match(run, { status: 'succeeded', error: null })
    names.push(String(run.remote_key).slice('all/'.length))
    await clock.advance(1000)
  }
  await k.stop()
  const environment = {
    BUSBAR_RECOVERY_KEY: key,
    BACKUP_S3_ENDPOINT: s3.host,
    BACKUP_S3_BUCKET: s3Bucket,
    BACKUP_S3_PREFIX: 'all/',
    BACKUP_S3_USE_SSL: 'false',
    BACKUP_S3_ACCESS_KEY: s3Keys.access_key,
    BACKUP_S3_SECRET_KEY: s3Keys.secret_key
  }
  const [first = '', second = ''] = names
  return { s3, first, second, environment }
}

/** Restores from the bucket onto a machine with nothing; what it has said, and the projects that are there then. */
async function restored(t: Test, environment: Readonly<Record<string, string>>, name: string) {
  const directory = await folder(t)
  const database = await createDatabase()
  t.teardown(() => database.drop())
  const said = await busbar(['restore', '--remote', name], {
    directory,
    databaseUrl: database.url,
    environment
  })
  const projects = await withClient(database.url, async client => {
    const { rows } = await client
      .query<{ name: string }>('select name from projects.project order by 1')
      .catch(() => ({ rows: [] }))
    return rows.map(row => row.name)
  })
  return { ...said, projects, left: await readdir(directory) }
}

test('a platform is restored straight from the bucket', { timeout: 280_000 }, async t => {
  const { s3, first, second, environment } = await twoArchives(t)
  // What somebody else keeps there.
  const bytes = s3.objects.get(`all/${second}`) ?? Buffer.alloc(0)
  s3.replace('all/notes.txt', Buffer.from('none of ours'))
  s3.replace(`elsewhere/${second.replace('20261128', '20271128')}`, bytes)
  const directory = await folder(t)

  await t.test('its archives are listed, the newest first', async t => {
    const listed = await busbar(['restore', '--list'], { directory, environment })
    t.equal(listed.code, 0, listed.stderr)
    const whose = `installation ${second.slice('busbar-backup-20261128T120001Z-'.length).slice(0, 8)}`
    t.same(
      listed.stdout
        .trim()
        .split('\n')
        .map(line => line.split('\t')),
      [
        [second, '2026-11-28T12:00:01.000Z', `${bytes.length} bytes`, whose],
        [first, '2026-11-28T12:00:00.000Z', `${s3.objects.get(`all/${first}`)?.length} bytes`, whose]
      ]
    )
    t.same(await readdir(directory), [], 'nothing is begun for that')
    const { BACKUP_S3_BUCKET: _bucket, ...without } = environment
    t.match(await busbar(['restore', '--list'], { directory, environment: without }), {
      code: 1,
      stderr: /set BACKUP_S3_BUCKET: it says where the archive is/
    })
  })

  await t.test('the newest is restored, and one by its name', async t => {
    const newest = await restored(t, environment, 'latest')
    t.equal(newest.code, 0, newest.stderr)
    t.match(newest.stdout, `all/${second} is fetched, ${bytes.length} bytes`)
    t.same(newest.projects, ['Later', 'Shop'])
    t.notOk(newest.left.includes('restore'), 'what was fetched is gone')
    const named = await restored(t, environment, first)
    t.equal(named.code, 0, named.stderr)
    t.same(named.projects, ['Shop'])
  })

  await t.test('what is not there, or damaged on the way, changes nothing', async t => {
    t.match(await restored(t, environment, 'busbar-backup-20200101T000000Z.tar.gz'), {
      code: 1,
      stderr:
        /there is no archive busbar-backup-20200101T000000Z\.tar\.gz in the bucket; "busbar restore --list"/,
      projects: []
    })
    t.match(await restored(t, { ...environment, BACKUP_S3_PREFIX: 'none/' }, 'latest'), {
      code: 1,
      stderr: /there is no archive below none\/ in the bucket/,
      projects: []
    })
    s3.replace(`all/${second}`, bytes.subarray(0, bytes.length - 100))
    const short = await restored(t, environment, 'latest')
    t.match(short, { code: 1, stderr: /damaged or not whole/, projects: [] })
    t.notOk(short.left.includes('restore'))
    const both = await busbar(['restore', '--remote', 'latest', 'file'], { directory, environment })
    t.match(both, { code: 2, stderr: /name one archive, or give --remote/ })
  })
})
