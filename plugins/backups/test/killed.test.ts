import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { startS3Server } from '../../../lab/s3-server.js'
import {
  backUp,
  contentOf,
  createDatabase,
  ended,
  filesOf,
  largeLines,
  lines,
  type Opened,
  openPlatform,
  pathOf,
  startWith,
  storedIn,
  writeContent
} from './kit.js'

const root = join(import.meta.dirname, '../../..')

const standing = { exchanged: 'exchanged', serving: 'serving', 'settle restore': 'behind a restore' }

/** Runs a platform on the same data until it says `line`, where that is one, or until that is so, and kills it there. */
async function killAt(t: Test, { k, probe }: Opened, line: string | (() => boolean)): Promise<void> {
  const state = {
    directory: k.state.directory,
    databaseUrl: k.state.database.url,
    probeDirectory: probe.directory,
    stands:
      typeof line !== 'string'
        ? 'outside'
        : (Object.entries(standing).find(([begin]) => line.startsWith(begin))?.[1] ?? 'in work')
  }
  const child: ChildProcess = spawn(
    process.execPath,
    [
      `--import=${join(root, 'scripts/test-loader.mjs')}`,
      '--conditions=busbar-source',
      join(import.meta.dirname, 'crash-child.ts'),
      JSON.stringify(state)
    ],
    { cwd: root, env: process.env, stdio: ['ignore', 'pipe', 'inherit'] }
  )
  t.teardown(() => child.kill('SIGKILL'))
  const over = once(child, 'exit')
  const said: string[] = []
  const output = child.stdout
  if (output === null) throw new Error('the child has no output')
  createInterface(output).on('line', text => said.push(text))
  await until(
    () => (typeof line === 'string' ? said.includes(line) : line()),
    `the platform to be there (${typeof line === 'string' ? line : 'its store'})`,
    150_000
  )
  child.kill('SIGKILL')
  await over
}

const partial = (name: string): boolean => name.endsWith('.part')

test(
  'a platform that stops in the middle of a backup makes it after the start',
  { timeout: 240_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const path = pathOf(project, await createDatabase(opened, 'Stopping', lines(50_000)))
    probe.hold = new Promise(() => {})
    await admin.post(`${path}/backups`)
    await until(async () => (await filesOf(k)).some(partial), 'the file to be begun')
    await k.stop()
    t.notOk((await filesOf(k)).some(partial), 'nothing is left half')
    probe.hold = null
    const second = await startWith(t, probe, { state: k.state })
    const again = await second.as.session()
    t.match(await ended(again, `${path}/backups`), { status: 'succeeded', log: /the platform stops/ })
  }
)

test(
  'one that is killed in the middle of a backup fails it, and leaves nothing half',
  { timeout: 400_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const id = await createDatabase(opened, 'Killed', lines(50_000))
    const path = pathOf(project, id)
    await k.holdJobs('backups')
    await admin.post(`${path}/backups`)
    await k.stop()
    await killAt(t, opened, `dump ${id}`)
    const second = await startWith(t, probe, { state: k.state })
    const again = await second.as.session()
    const backup = await until(
      async () => {
        const [newest] = (await again.get(`${path}/backups`)).body
        return newest.status === 'running' ? undefined : newest
      },
      'the backup to be failed',
      90_000
    )
    t.match(backup, { status: 'failed', error: 'the platform ended while the backup was under way' })
    t.same(probe.calls, [`settle backup ${id}`], 'what it had changed is put back')
    t.notOk((await filesOf(second)).some(partial))
    t.match(await backUp(again, path), { status: 'succeeded' }, 'the next one is made')
  }
)

test(
  'a schedule that waited for it is made after the start, whatever becomes of the platform',
  { timeout: 400_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const id = await createDatabase(opened, 'Waited', lines(50_000))
    const path = pathOf(project, id)
    const destination = await admin.post(`/api/projects/${project}/backup-destinations`, {
      name: 'Cellar',
      provider: 'local'
    })
    const { body: config } = await admin.post(`${path}/backup-configs`, {
      destination_id: destination.body.id,
      schedule: '0 3 1 1 *'
    })
    probe.hold = new Promise(() => {})
    await admin.post(`${path}/backups`)
    await until(async () => (await filesOf(k)).some(partial), 'the backup to be begun')
    await k.enqueue('backups', 'due', { configId: config.id })
    await until(
      async () =>
        (await k.query("select from graphile_worker.jobs where task_identifier = 'backups:due'")).length ===
        0,
      'the schedule to have been due'
    )
    await k.stop()
    await killAt(t, opened, `dump ${id}`)
    probe.hold = null
    const second = await startWith(t, probe, { state: k.state })
    const again = await second.as.session()
    const all = await until(
      async () => {
        const rows: Array<{ status: string }> = (await again.get(`${path}/backups`)).body
        return rows.length === 2 && rows.every(({ status }) => status !== 'running') && rows
      },
      'both to have ended',
      150_000
    )
    t.match(all, [
      { status: 'succeeded', config_id: config.id },
      { status: 'failed', config_id: null }
    ])
  }
)

test(
  'one that is killed in the middle of an upload fails it, and leaves no part of it in the bucket',
  { timeout: 400_000 },
  async t => {
    const s3 = await startS3Server(t)
    const opened = await openPlatform(t)
    const { k, probe, project } = opened
    const id = await createDatabase(opened, 'Sent', largeLines())
    const path = pathOf(project, id)
    const run = await storedIn(opened, s3, path)
    await k.holdJobs('backups')
    await run()
    await k.stop()
    let isStanding = false
    s3.fault = ({ part }) => {
      if (part !== 2) return undefined
      isStanding = true
      return 'silence'
    }
    await killAt(t, opened, () => isStanding)
    t.equal(s3.uploads().length, 1, 'there is something to be left')
    s3.fault = undefined
    const second = await startWith(t, probe, { state: k.state })
    const again = await second.as.session()
    const backup = await until(
      async () => {
        const [newest] = (await again.get(`${path}/backups`)).body
        return newest.status === 'running' ? undefined : newest
      },
      'the backup to be failed',
      90_000
    )
    t.match(backup, { status: 'failed', error: 'the platform ended while the backup was under way' })
    t.same(s3.uploads(), [])
    t.equal(s3.objects.size, 0)
  }
)

test(
  'one that is killed in the middle of a restore or of a drill does it again',
  { timeout: 400_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const content = lines(20_000)
    const id = await createDatabase(opened, 'Again', content)
    const path = pathOf(project, id)
    const { id: backupId } = await backUp(admin, path)
    await writeContent(probe, id, 'lost\n')
    probe.calls.length = 0
    await k.holdJobs('backups')
    await admin.post(`${path}/restore`, { backup_id: backupId })
    await admin.post(`${path}/backups/${backupId}/check`)
    await k.stop()
    await killAt(t, opened, `restore ${id}`)
    const second = await startWith(t, probe, { state: k.state })
    const again = await second.as.session()
    const restored = await until(
      async () => {
        const [newest] = (await again.get(`${path}/restores`)).body
        return newest.status === 'running' ? undefined : newest
      },
      'the restore to end',
      90_000
    )
    t.match(restored, { status: 'succeeded', log: /it begins again/ })
    t.ok((await contentOf(probe, id)) === content)
    await until(
      async () => (await again.get(`${path}/backups`)).body[0].proof.status === 'proven' || undefined,
      'the drill to end',
      90_000
    )
  }
)

test(
  'a restore that was whole when the platform was killed is not done again: what was written since stays',
  { timeout: 400_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const id = await createDatabase(opened, 'Whole', lines(1_000))
    const path = pathOf(project, id)
    const { id: backupId } = await backUp(admin, path)
    await k.holdJobs('backups')
    await admin.post(`${path}/restore`, { backup_id: backupId })
    await k.stop()
    await killAt(t, opened, `settle restore ${id}`)
    await writeContent(probe, id, 'acknowledged since\n')
    probe.calls.length = 0
    const second = await startWith(t, probe, { state: k.state })
    const again = await second.as.session()
    const restored = await until(
      async () => {
        const [newest] = (await again.get(`${path}/restores`)).body
        return newest.status === 'running' ? undefined : newest
      },
      'the restore to end',
      90_000
    )
    t.match(restored, { status: 'succeeded' })
    t.notOk(probe.calls.includes(`restore ${id}`))
    t.ok(probe.calls.includes(`settle restore ${id}`), 'what it has changed was put back')
    t.equal(await contentOf(probe, id), 'acknowledged since\n')
  }
)

for (const [when, line] of [
  ['while it serves and what was there before is removed', 'serving'],
  ['when it serves, before that is known', 'exchanged']
] as const)
  test(
    `a restore whose platform is killed ${when} is not done again: what was written since stays`,
    { timeout: 400_000 },
    async t => {
      const opened = await openPlatform(t)
      const { k, admin, probe, project } = opened
      const id = await createDatabase(opened, 'Serving', lines(1_000))
      const path = pathOf(project, id)
      const { id: backupId } = await backUp(admin, path)
      await k.holdJobs('backups')
      await admin.post(`${path}/restore`, { backup_id: backupId })
      await k.stop()
      await killAt(t, opened, `${line} ${id}`)
      await writeContent(probe, id, 'acknowledged since\n')
      probe.calls.length = 0
      probe.isExchanged = line === 'exchanged'
      const second = await startWith(t, probe, { state: k.state })
      const again = await second.as.session()
      const restored = await until(
        async () => {
          const [newest] = (await again.get(`${path}/restores`)).body
          return newest.status === 'running' ? undefined : newest
        },
        'the restore to end',
        90_000
      )
      t.match(restored, { status: 'succeeded' })
      t.notOk(probe.calls.includes(`restore ${id}`))
      t.ok(probe.calls.includes(`settle restore ${id}`), 'what it has changed was put back')
      t.equal(await contentOf(probe, id), 'acknowledged since\n')
    }
  )

test(
  'a restore that its source has put back while backups were off is not begun again: what was written since stays',
  { timeout: 400_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const id = await createDatabase(opened, 'Back', lines(1_000))
    const path = pathOf(project, id)
    const { id: backupId } = await backUp(admin, path)
    await k.holdJobs('backups')
    await admin.post(`${path}/restore`, { backup_id: backupId })
    await k.stop()
    await killAt(t, opened, `restore ${id}`)
    await writeContent(probe, id, 'acknowledged since\n')
    probe.calls.length = 0
    probe.isUndone = true
    const second = await startWith(t, probe, { state: k.state })
    const again = await second.as.session()
    t.match(await ended(again, `${path}/restores`), {
      status: 'failed',
      error: /was put back.*ask for it again/
    })
    t.notOk(probe.calls.includes(`restore ${id}`))
    t.equal(await contentOf(probe, id), 'acknowledged since\n')
  }
)

test(
  'a restore whose platform stops when it serves, before that is known, is not done again',
  { timeout: 400_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    const id = await createDatabase(opened, 'Stopping', lines(1_000))
    const path = pathOf(project, id)
    const { id: backupId } = await backUp(admin, path)
    let isStopping = (): void => {}
    probe.holdExchanged = new Promise((_resolve, reject) => {
      isStopping = () => reject(new Error('the platform stops'))
    })
    await admin.post(`${path}/restore`, { backup_id: backupId })
    await until(() => probe.calls.includes(`exchanged ${id}`), 'it to serve')
    await writeContent(probe, id, 'acknowledged since\n')
    probe.isExchanged = true
    const stopped = k.stop()
    // As a source does whose work has ended by its signal.
    setTimeout(isStopping, 1_000)
    await stopped
    probe.holdExchanged = null
    probe.calls.length = 0
    const second = await startWith(t, probe, { state: k.state })
    const again = await second.as.session()
    t.match(await ended(again, `${path}/restores`), { status: 'succeeded' })
    t.notOk(probe.calls.includes(`restore ${id}`))
    t.equal(await contentOf(probe, id), 'acknowledged since\n')
  }
)
