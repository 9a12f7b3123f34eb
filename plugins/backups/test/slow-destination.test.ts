import { definePlugin } from 'busbar/sdk'
import type { BucketOptions } from 'busbar/sdk/s3'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { type S3Server, startS3Server } from '../../../lab/s3-server.js'
import { backupDestinations } from '../api.js'
import { S3Storage } from '../destinations/s3-storage.js'
import {
  backUp,
  contentOf,
  createDatabase,
  createProject,
  ended,
  lines,
  openPlatform,
  pathOf,
  restore,
  storedIn,
  untilTold,
  writeContent
} from './kit.js'

const kibibyte = 1024
/** Small parts, and waits that a test has time for. */
const plan = {
  bytesOf: () => 64 * kibibyte,
  takesAll: () => false,
  parts: 10_000,
  longest: 10_000 * 64 * kibibyte,
  memory: 128 * kibibyte
}
const usual = { silenceMs: 500, requestMs: 60_000, awayMs: 1_000 }

/** A platform with a database whose backups go to a store that is slow as the test says. */
async function opened(t: Test, waits: BucketOptions['waits'] = usual) {
  const s3 = await startS3Server(t)
  const definition = definePlugin({
    id: 'hasty',
    contributes: contribute =>
      contribute(backupDestinations, 'hasty', {
        needs: ['bucket', 'keys'],
        open: async settings => new S3Storage(settings, { plan, waits: { ...usual, ...waits } })
      })
  })
  const platform = await openPlatform(t, {
    inline: [{ manifest: { id: 'hasty', requires: { backups: '^0.1.0' } }, definition }]
  })
  const { admin, project } = platform
  const content = lines(200_000)
  const id = await createDatabase(platform, 'Large', content)
  const path = pathOf(project, id)
  return { ...platform, s3, id, path, content, run: await storedIn(platform, s3, path, 'hasty'), admin }
}

const untilStalled = async ({ requests }: S3Server, part: number): Promise<void> => {
  await until(() => requests.some(request => request.part === part), 'the upload to stall')
}

const never = new Promise<undefined>(() => {})

test('a store that stalls for longer than a request has and then goes on gets all of it', async t => {
  const { s3, run, admin, path, probe, id, content } = await opened(t, { awayMs: 60_000 })
  const mostStalls = 7
  let stalls = 0
  s3.fault = ({ part }) => (part === 3 && stalls++ < mostStalls ? never : undefined)
  await run()
  const backup = await ended(admin, `${path}/backups`)
  t.match(backup, { status: 'succeeded', error: '' }, JSON.stringify(backup))
  t.equal(stalls, mostStalls + 1)
  t.equal(s3.requests.filter(({ part }) => part === 2).length, 1, 'what was sent is not sent again')
  t.same(s3.uploads(), [])
  await writeContent(probe, id, 'lost\n')
  t.match(await restore(admin, path, { backup_id: backup.id }), { status: 'succeeded' })
  t.ok((await contentOf(probe, id)) === content)
})

test('a store that never goes on fails the backup, keeps nobody waiting, and has nothing of it', async t => {
  const platform = await opened(t)
  const { k, s3, run, admin, path, probe, content } = platform
  s3.fault = ({ part }) => (part === 3 ? never : undefined)
  await run()
  await untilStalled(s3, 3)
  const ben = await k.as.session('ben')
  const other = await createProject(ben, 'Other')
  const bens = await createDatabase({ ...platform, project: other }, 'Bens', lines(10))
  t.match(await backUp(ben, pathOf(other, bens)), { status: 'succeeded' }, 'others go on meanwhile')
  const backup = await ended(admin, `${path}/backups`)
  t.match(backup, {
    status: 'failed',
    error: `${s3.host} does not answer (TimeoutError): check the endpoint, and whether a firewall is in between`,
    size_bytes: 0
  })
  t.ok(probe.dumped < content.length / 2, `${probe.dumped} bytes of ${content.length} were taken`)
  t.same(s3.uploads(), [])
  t.equal(s3.objects.size, 0)
  const told = await untilTold(admin, ({ type }) => type === 'database.backup_failed')
  t.match(told[0]?.body, 'does not answer')
  s3.fault = undefined
  await run()
  t.match(await ended(admin, `${path}/backups`), { status: 'succeeded' }, 'the next one is made')
})

test('what a store has of a backup that it did not answer any more goes when it does again', async t => {
  const { k, s3, run, admin, path } = await opened(t)
  let isAway = false
  s3.fault = ({ part }) => {
    isAway ||= part === 3
    return isAway ? 'silence' : undefined
  }
  await run()
  t.match(await ended(admin, `${path}/backups`), { status: 'failed', error: /does not answer/ })
  t.equal(s3.uploads().length, 1)
  s3.fault = undefined
  await k.enqueue('backups', 'sweep', {})
  await until(() => s3.uploads().length === 0, 'the half upload to go')
  t.equal(s3.objects.size, 0)
})

test('a store that takes a byte now and then fails the backup with what helps', async t => {
  const { s3, run, admin, path } = await opened(t, { silenceMs: 60_000, requestMs: 700 })
  s3.fault = ({ part }) => (part === 3 ? 'trickle' : undefined)
  await run()
  t.match(await ended(admin, `${path}/backups`), {
    status: 'failed',
    error: `${s3.host} is too slow: a request was not answered in the time it has; use a store that is nearer, or a faster connection`
  })
  t.same(s3.uploads(), [])
  t.equal(s3.objects.size, 0)
})
