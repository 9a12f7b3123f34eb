import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { type WaitFault, waitFaults } from './waits.js'

const root = join(import.meta.dirname, '../..')

/** Nothing can be waited for where the point is that nothing happens: a time is given to what must not come. */
const absence = 'gives time to what must not happen'

/** How many sleeps the flow of a test has, and why. A file with fewer is changed here too. */
const exceptions: Readonly<Record<string, readonly [sleeps: number, reason: string]>> = {
  'plugins/builds/test/layer-stream.test.ts': [1, absence],
  'plugins/direct/test/switch.test.ts': [1, 'a stopped process takes no connection, which nothing shows'],
  'plugins/logs/test/log-writer.test.ts': [1, absence],
  'plugins/runtime-docker/test/host-rules.test.ts': [1, absence],
  'plugins/runtime-docker/test/listing.test.ts': [1, absence],
  'plugins/runtime-docker/test/terminals.test.ts': [2, absence],
  'plugins/terminal/test/pressure.test.ts': [2, absence],
  'plugins/tokens/test/tokens.test.ts': [1, 'the middle of a load, wherever that is'],
  'test/bus/fan-out.test.ts': [2, 'a raw client shows nothing before it reads'],
  'test/bus/protocol.test.ts': [3, absence],
  'test/bus/relay.test.ts': [4, absence],
  'test/bus/state-refresh.test.ts': [1, absence],
  'test/clock/clock.test.ts': [2, 'is about the time of the machine itself'],
  'test/event-loop/stalls.test.ts': [2, absence],
  'test/jobs/crash.test.ts': [1, absence],
  'test/jobs/events.test.ts': [1, absence],
  'test/jobs/job-runner.test.ts': [4, absence],
  'test/jobs/singleton.test.ts': [1, absence],
  'test/plugins/left-behind.test.ts': [1, absence],
  'test/sdk/turns.test.ts': [1, 'lets the load beside it begin']
}

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'], {
  cwd: root,
  encoding: 'utf8'
})
  .split('\n')
  // Programs that tests start are what the tests look at; they are ended by these.
  .filter(
    path => /(^|\/)test\/|^lab\/|^sdk\/testing\//.test(path) && !/-(?:child|process|worker)\.ts$/.test(path)
  )

const faults = files.flatMap(path => {
  let code: string
  try {
    code = readFileSync(join(root, path), 'utf8')
  } catch {
    // removed and not committed yet
    return []
  }
  return waitFaults(code).map(fault => ({ path, ...fault }))
})

test('every loop of a test that asks and sleeps has a limit', async t => {
  t.ok(files.length > 200, 'the tests were found')
  t.same(
    faults.filter(({ kind }) => kind === 'polls without a limit').map(({ path, code }) => `${path}: ${code}`),
    [],
    'until() has a limit, and words for what was waited for'
  )
})

test('no sleep decides the result of a test, but where nothing can be waited for', async t => {
  const sleeps = faults.filter(({ kind }) => kind === 'sleeps')
  const counts: Record<string, number> = {}
  for (const { path } of sleeps) counts[path] = (counts[path] ?? 0) + 1
  t.same(
    counts,
    Object.fromEntries(Object.entries(exceptions).map(([path, [count]]) => [path, count])),
    `wait for what is to happen, by until(): ${sleeps
      .filter(({ path }) => counts[path] !== exceptions[path]?.[0])
      .map(({ path, code }) => `${path}: ${code}`)
      .join('; ')}`
  )
})

const refused: ReadonlyArray<readonly [string, WaitFault['kind']]> = [
  [
    "import { setTimeout as sleep } from 'node:timers/promises'\nfor (;;) { if (await isThere()) break; await sleep(20) }",
    'polls without a limit'
  ],
  [
    "import { setTimeout as sleep } from 'timers/promises'\nwhile (!(await isThere())) await sleep(20)",
    'polls without a limit'
  ],
  ['do await new Promise(r => setTimeout(r, 100)); while (left > 0)', 'polls without a limit'],
  [
    'for (let left = 1; left > 0; ) { left = await count(); await new Promise(resolve => setTimeout(resolve, 100)) }',
    'polls without a limit'
  ],
  [
    "import { setTimeout as wait } from 'node:timers/promises'\ntest('a', async t => { await wait(50); t.ok(done) })",
    'sleeps'
  ],
  [
    "void test('a', { timeout: 1 }, async t => { await t.test('b', async () => { await new Promise(resolve => setTimeout(resolve, 9)) }) })",
    'sleeps'
  ]
]

const permitted = [
  "import { setTimeout as sleep } from 'node:timers/promises'\nwhile (!isOver) { await ask(); await sleep(5) }",
  "import { setTimeout as sleep } from 'node:timers/promises'\nfor (let n = 0; n < 5; n++) { await ask(); await sleep(5) }",
  "import { setTimeout as sleep } from 'node:timers/promises'\nwhile (performance.now() < end) await sleep(5)",
  "import { setTimeout as sleep } from 'node:timers/promises'\ntest('a', async () => { serve(async () => { await sleep(5) }) })",
  "import { setTimeout as sleep } from 'node:timers/promises'\nwhile (more()) { read(); serve(async () => { await sleep(5) }) }",
  "test('a', async () => { await until(() => isThere, 'it') })"
]

test('what the rule refuses, and what it lets pass', async t => {
  for (const [code, kind] of refused) t.match(waitFaults(code), [{ kind }], code)
  for (const code of permitted) t.same(waitFaults(code), [], code)
})
