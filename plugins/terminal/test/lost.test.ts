/** Sessions whose process has gone, or that are asked for in another one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createTestKernel, TestClient, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireEngine } from '../../../lab/engine.js'
import { ProgramLines } from '../../../lab/program-lines.js'
import { openTerminalLab, TestTerminal } from './terminal-lab.js'

/** Ends every supervisor in a container, from a terminal in it. */
const killSupervisors =
  'for process in $(grep -l busbar-terminal /proc/[0-9]*/cmdline | cut -d/ -f3); do [ $process = $$ ] || kill -9 $process; done'

test('sessions', async t => {
  if (!(await requireEngine(t))) return
  const lab = await openTerminalLab()
  t.teardown(async () => await lab.k.close())
  const container = await lab.container()

  await t.test('end with a platform that is killed, at the latest when it is started again', async t => {
    const { credential, userId } = await lab.k.as.session('ann')
    const { database, directory } = lab.k.state
    await lab.k.stop()
    const child = spawn(
      process.execPath,
      [
        `--import=${new URL('../../../scripts/test-loader.mjs', import.meta.url).href}`,
        '--conditions=busbar-source',
        fileURLToPath(new URL('platform-child.ts', import.meta.url)),
        JSON.stringify({ url: database.url, directory, environment: {} })
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] }
    )
    const exited = once(child, 'exit')
    t.teardown(() => child.kill('SIGKILL'))
    const { url } = JSON.parse(await new ProgramLines(child.stdout, 'the platform').next('where it listens'))
    const ann = new TestClient(url, credential, userId)
    const left = await lab.open(ann)
    left.type(`${killSupervisors}; trap '' HUP; sleep 1002\n`)
    await lab.runs(/sleep 1002/, container)
    const usual = await lab.open(ann)
    usual.type(`trap '' HUP; sleep 1001\n`)
    await lab.runs(/sleep 1001/, container)
    await lab.session(ann)

    child.kill('SIGKILL')
    await exited
    await lab.gone(/sleep 1001/, container)
    t.ok((await lab.processes(container)).includes('sleep 1002'), 'what has nobody to end it runs on')

    const clock = testClock(new Date())
    await lab.restart({ clock })
    await until(async () => {
      await clock.advance(10_000)
      return (await lab.k.query('select 1 from terminal.session')).length === 0
    }, 'nothing is left')
    await lab.gone(/sleep 1002|busbar-terminal/, container)
    t.same((await lab.ends()).map(({ reason }) => reason).sort(), [
      'platform-lost',
      'platform-lost',
      'unopened'
    ])
  })

  await t.test('whose end cannot be written down at once are in the audit log later, once', async t => {
    await lab.restart({})
    const { k } = lab
    const ann = await k.as.session('ann')
    const id = await lab.session(ann)
    const terminal = await TestTerminal.attach(ann, id)
    await terminal.shows(/#/)
    await k.transaction(async tx => {
      await k.query('lock table terminal.session in access exclusive mode', [], tx)
      terminal.type('exit\n')
      t.equal((await terminal.closed()).code, 1000, 'nobody waits for it')
      await lab.gone(/busbar-terminal/, container)
      const isWaiting = async (): Promise<boolean> => {
        const [row] = await k.query<{ count: number }>(
          `select count(*)::integer as count from pg_stat_activity where datname = current_database()
          and wait_event_type = 'Lock' and query ilike '%update terminal.session set ended_at%'`
        )
        return (row?.count ?? 0) > 0
      }
      await until(isWaiting, 'it waits for the table')
      await until(async () => !(await isWaiting()), 'it has given up')
    })
    const ends = await until(async () => {
      const found = (await lab.ends()).filter(end => end.session_id === id)
      return found.length > 0 && found
    }, 'it is in the audit log')
    t.match(ends, [{ reason: 'exited' }])
    t.equal(ends.length, 1)
    await until(
      async () => (await k.query('select 1 from terminal.session where id = $1', [id])).length === 0,
      'nothing is left of it',
      60_000
    )
  })

  await t.test('are opened in any process, and taken up again in that one alone', async t => {
    await lab.restart({})
    const other = await createTestKernel({ state: lab.k.state })
    t.teardown(async () => await other.stop())
    const ann = await lab.k.as.session('ann')
    const there = new TestClient(other.url, ann.credential, ann.userId)
    const id = await lab.session(ann)
    const terminal = await TestTerminal.attach(there, id)
    terminal.type('echo here $((1 + 1))\n')
    await terminal.shows(/here 2/)
    await t.rejects(TestTerminal.attach(ann, id), /409/)
    await terminal.leave()
    await t.rejects(TestTerminal.attach(ann, id), /409/)
    const again = await TestTerminal.attach(there, id)
    await again.shows(/here 2/)
    const ids = [
      await lab.session(there),
      await lab.session(ann),
      await lab.session(there),
      await lab.session(ann)
    ]
    t.equal(ids.length, 4)
    t.equal((await there.post(`${lab.path}/terminal`)).status, 429, 'they count together')
    // What ends it is told in one process and holds in all.
    t.equal((await ann.delete(lab.path)).status, 200)
    t.equal((await again.closed()).code, 1000)
    t.match(again.frames.at(-1), { reason: 'application-deleted' })
  })
})
