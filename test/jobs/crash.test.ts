import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { openPostgres } from '../../core/database/postgres.js'
import { JobRunner } from '../../core/jobs/job-runner.js'
import { runSingleton } from '../../core/jobs/singleton.js'
import { startEmbedded } from '../../embedded-postgres/index.js'
import { freshPostgres, log } from '../database/database-kit.js'
import { job, startJobs } from './job-kit.js'

function startChild(t: Test, url: string): { child: ChildProcess; said: Set<string> } {
  const child = spawn(
    process.execPath,
    [
      `--import=${new URL('../../scripts/test-loader.mjs', import.meta.url).href}`,
      '--conditions=busbar-source',
      fileURLToPath(new URL('worker-child.ts', import.meta.url)),
      url
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  t.teardown(() => {
    child.kill('SIGKILL')
  })
  const said = new Set<string>()
  child.stdout.on('data', chunk => {
    for (const line of String(chunk).trim().split('\n')) said.add(line)
  })
  return { child, said }
}

test('a job whose process is killed runs again as soon as another process starts, and says that it is not its first time', async t => {
  const postgres = await freshPostgres(t)
  const jobs = new JobRunner({ postgres, log })
  t.teardown(async () => {
    await jobs.stop()
  })
  const attempts: number[] = []
  await jobs.add('shop', [
    job('sell', async (_payload, { attempt }) => {
      attempts.push(attempt)
    })
  ])
  await jobs.for('shop').enqueue('sell', {}, { queue: 'till' })
  const { child, said } = startChild(t, postgres.url)
  t.ok(await until(() => said.has('job'), 'the other process runs the job', 20_000))
  child.kill('SIGKILL')
  await once(child, 'exit')
  const startedAt = performance.now()
  await jobs.start()
  t.ok(await until(() => attempts.length === 1, 'it has run again'))
  t.comment(`${Math.round(performance.now() - startedAt)} ms after the start`)
  t.same(attempts, [2])
})

test('the jobs of a process that lives are left to it', async t => {
  const postgres = await freshPostgres(t)
  const waiting = new JobRunner({ postgres, log })
  await waiting.add('shop', [job('sell', async () => {})])
  await waiting.for('shop').enqueue('sell', {})
  const { said } = startChild(t, postgres.url)
  t.ok(await until(() => said.has('job'), 'the other process runs the job', 20_000))
  const jobs = await startJobs(t, postgres)
  await jobs.add('shop', [
    job('sell', async () => {
      t.fail('it runs elsewhere')
    })
  ])
  t.match(await jobs.status(), [{ lane: 'short', active: 1, pending: 0 }])
})

test('a singleton runs in one process and moves within seconds when that one is killed', async t => {
  const postgres = await freshPostgres(t)
  const { child, said } = startChild(t, postgres.url)
  t.ok(await until(() => said.has('singleton'), 'the other process runs the singleton', 20_000))
  let runs = 0
  const stop = new AbortController()
  const ended = runSingleton({
    postgres,
    name: 'shop.clock',
    log,
    signal: stop.signal,
    run: async signal => {
      runs++
      await once(signal, 'abort')
    }
  })
  await sleep(500)
  t.equal(runs, 0, 'the other process has it')
  child.kill('SIGKILL')
  const killedAt = performance.now()
  t.ok(await until(() => runs === 1, 'it runs here', 5000))
  t.comment(`taken over after ${Math.round(performance.now() - killedAt)} ms`)
  stop.abort()
  await ended
})

test('jobs survive a restart of the server, and stop without one', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-jobs-'))
  await chmod(directory, 0o711)
  t.teardown(async () => {
    await rm(directory, { recursive: true, force: true })
  })
  let server = await startEmbedded({ directory, log, fsync: false })
  const postgres = await openPostgres({ url: server.url, log })
  const jobs = new JobRunner({ postgres, log })
  await jobs.start()
  const seen: unknown[] = []
  let isBusy = false
  await jobs.add('shop', [
    job('sell', async payload => {
      isBusy = true
      await new Promise(resolve => setTimeout(resolve, 300))
      seen.push(payload)
    })
  ])
  await jobs.for('shop').enqueue('sell', { n: 1 })
  await until(() => isBusy, 'the job runs')
  await server.stop()
  await until(() => seen.length === 1, 'one has run')
  server = await startEmbedded({ directory, log, fsync: false })
  t.ok(
    await until(
      async () =>
        await jobs.status().then(
          ([lane]) => lane?.active === 0,
          () => false
        ),
      'the answer was recorded after the restart',
      20_000
    )
  )
  await jobs.for('shop').enqueue('sell', { n: 2 })
  t.ok(await until(() => seen.length >= 2, 'the second job has run', 10_000))
  t.same(seen, [{ n: 1 }, { n: 2 }])
  await server.stop()
  const startedAt = performance.now()
  await jobs.stop()
  t.ok(performance.now() - startedAt < 10_000, `it took ${Math.round(performance.now() - startedAt)} ms`)
  await postgres.close()
})
