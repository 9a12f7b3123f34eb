import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDatabase, createTestKernel, type TestClient, testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type S3Server, s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { verifyArchive } from '../archive/archive-reader.js'
import { busbar } from './cli.js'
import { withClient } from './faults-kit.js'
import { archives, backUp, ended, makeKey, runsOf } from './kit.js'
import { folder } from './original-platform.js'

const night = '2026-11-28T02:00:00Z'

/** A platform that uploads to this store, with the prefix that all have. */
async function installation(t: Test, { host }: S3Server, project: string) {
  const clock = testClock(night)
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const key = await makeKey(admin)
  const remote = { enabled: true, endpoint: host, bucket: s3Bucket, use_ssl: false }
  t.equal((await admin.put('/api/backups/remote', { ...remote, ...s3Keys })).status, 200)
  await admin.post('/api/projects', { name: project, slug: project.toLowerCase() })
  return { k, clock, admin, key }
}

async function uploaded(t: Test, admin: TestClient): Promise<string> {
  const run = await backUp(admin)
  t.match(run, { status: 'succeeded', error: null })
  return String(run.remote_key)
}

const nameOf = (key: string): string => key.slice('busbar/'.length)
/** As former releases named it. */
const formerName = (stamp: string): string => `busbar/busbar-backup-${stamp}.tar.gz.age`

test(
  'two installations that back up in one second to one place keep both archives, and remove their own alone',
  { timeout: 400_000 },
  async t => {
    const s3 = await startS3Server(t)
    const [shop, works] = [await installation(t, s3, 'Shop'), await installation(t, s3, 'Works')]
    const [first, theirs] = [await uploaded(t, shop.admin), await uploaded(t, works.admin)]

    await t.test('each is there, and opens with its own key', async t => {
      t.equal(s3.objects.size, 2)
      for (const [key, identity] of [
        [first, shop.key],
        [theirs, works.key]
      ] as const) {
        const file = join(await folder(t), 'archive')
        await writeFile(file, s3.objects.get(key) ?? '')
        t.match(await verifyArchive({ file, identity }), { created_at: new Date(night).toISOString() })
      }
    })

    await t.test('what has had its time goes, and what is of another installation stays', async t => {
      // One is its own, by a release that did not say so in the name; of the other nobody knows.
      const [own, unknown] = [formerName('20261127T020000Z'), formerName('20261127T030000Z')]
      for (const key of [own, unknown]) s3.replace(key, Buffer.from('an archive'))
      await shop.k.query(
        `insert into platform_backups.run (id, started_at, begun_at, finished_at, status, remote_key, is_uploaded)
        values (gen_random_uuid(), $1, $1, $1, 'succeeded', $2, true)`,
        [new Date('2026-11-27T02:00:00Z'), own]
      )
      await shop.k.configure('platform-backups', { retain_days: 1, retain_count: 1 })
      const writer = await shop.k.as.token('write')
      shop.clock.set(5 * 86_400_000)
      shop.k.resetRateLimits()
      const last = await uploaded(t, writer)
      t.same([...s3.objects.keys()].sort(), [last, theirs, unknown].sort())
      t.equal((await archives(shop.k)).length, 1, 'here too')
    })

    await t.test('what is under a key already is not written over', async t => {
      await works.clock.advance(1000)
      await works.k.holdJobs('platform-backups')
      t.equal((await works.admin.post('/api/backups/run', {})).status, 202)
      const [waiting] = await runsOf(works.admin)
      const key = theirs
        .replace('T020000Z', 'T020001Z')
        .replace(/[0-9a-f]{8}\.tar/, `${waiting?.id.slice(0, 8)}.tar`)
      s3.replace(key, Buffer.from('of somebody else'))
      await works.k.reload('platform-backups')
      t.match(await ended(works.admin), {
        status: 'failed',
        error: /was not uploaded: there is something under the key busbar\/.* already/,
        remote_key: null
      })
      t.equal(String(s3.objects.get(key)), 'of somebody else')
      s3.lose(key)
    })
  }
)

test('the newest archive is that of one installation', { timeout: 590_000 }, async t => {
  const s3 = await startS3Server(t)
  const [shop, works] = [await installation(t, s3, 'Shop'), await installation(t, s3, 'Works')]
  const mine = await uploaded(t, shop.admin)
  await works.clock.advance(60_000)
  works.k.resetRateLimits()
  const newer = await uploaded(t, works.admin)
  await shop.k.stop()
  const tag = (key: string): string => nameOf(key).split('-')[3] ?? ''
  const environment = {
    BUSBAR_RECOVERY_KEY: shop.key,
    BACKUP_S3_ENDPOINT: s3.host,
    BACKUP_S3_BUCKET: s3Bucket,
    BACKUP_S3_USE_SSL: 'false',
    BACKUP_S3_ACCESS_KEY: s3Keys.access_key,
    BACKUP_S3_SECRET_KEY: s3Keys.secret_key
  }
  const here = { directory: shop.k.state.directory, databaseUrl: shop.k.state.database.url, environment }
  /** Onto a machine with nothing. */
  const anew = async (t: Test, name: string) => {
    const database = await createDatabase()
    t.teardown(() => database.drop())
    const options = { directory: await folder(t), databaseUrl: database.url, environment }
    const said = await busbar(['restore', '--remote', name], options)
    const names = await withClient(database.url, async client => {
      const { rows } = await client
        .query<{ name: string }>('select name from projects.project')
        .catch(() => ({ rows: [] }))
      return rows.map(row => row.name)
    })
    return { ...said, names }
  }

  await t.test(
    'on a machine with nothing it is not guessed of several, and named it is restored',
    async t => {
      const refused = await anew(t, 'latest')
      t.match(refused, { code: 1, names: [], stderr: /archives of several installations below busbar\// })
      for (const part of [nameOf(mine), nameOf(newer), tag(mine), tag(newer), '--remote <name>'])
        t.ok(refused.stderr.includes(part), part)
      const named = await anew(t, nameOf(mine))
      t.equal(named.code, 0, named.stderr)
      t.same(named.names, ['Shop'])
    }
  )

  await t.test('a list says of which installation each is', async t => {
    const whose = async (options: Parameters<typeof busbar>[1]) =>
      (await busbar(['restore', '--list'], options)).stdout
        .trim()
        .split('\n')
        .map(line => [line.split('\t')[0], line.split('\t')[3]])
    t.same(await whose(here), [
      [nameOf(newer), `installation ${tag(newer)}`],
      [nameOf(mine), 'this installation']
    ])
    t.same(await whose({ directory: await folder(t), environment }), [
      [nameOf(newer), `installation ${tag(newer)}`],
      [nameOf(mine), `installation ${tag(mine)}`]
    ])
  })

  await t.test('where a platform is, it is that one, although there is a newer one of another', async t => {
    const restored = await busbar(['restore', '--remote', 'latest', '--replace', '--without-snapshot'], here)
    t.equal(restored.code, 0, restored.stderr)
    t.match(restored.stdout, `${mine} is fetched`)
    const bytes = s3.objects.get(mine) ?? Buffer.alloc(0)
    s3.lose(mine)
    t.match(await busbar(['restore', '--remote', 'latest', '--replace'], here), {
      code: 1,
      stderr: new RegExp(`no archive of the installation that is here .${tag(mine)}.*${tag(newer)}`)
    })
    s3.replace(mine, bytes)
  })

  await t.test('archives with the names of former releases are listed and restored', async t => {
    const former = formerName('20261101T020000Z')
    s3.replace(former, s3.objects.get(mine) ?? Buffer.alloc(0))
    for (const key of [mine, newer]) s3.lose(key)
    const listed = await busbar(['restore', '--list'], here)
    t.match(listed.stdout, `${nameOf(former)}\t2026-11-01T02:00:00.000Z`)
    t.match(await anew(t, 'latest'), { code: 0, names: ['Shop'] })
    s3.replace(mine, Buffer.from('not read'))
    const newest = await anew(t, 'latest')
    t.match(newest, { code: 1, stdout: `${mine} is fetched` }, 'older ones are taken for its former ones')
    s3.replace(formerName('20261128T020000Z'), await readFile(import.meta.filename))
    t.match(await anew(t, 'latest'), { code: 1, stderr: /of several installations/ }, 'others are not')
  })
})
