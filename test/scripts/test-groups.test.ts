import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { groupsOf, inTurns, isGroup } from '../../scripts/test-groups.mjs'

const root = join(import.meta.dirname, '..', '..')
const seconds: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(join(root, 'scripts/test-seconds.json'), 'utf8')
)

test('files share processes, those that change what a process has are alone, and every file is in one group', t => {
  const files = [
    ...Array.from({ length: 40 }, (_, at) => `plugins/projects/test/p${at}.test.ts`),
    'plugins/users/test/u.test.ts',
    'plugins/deployments/test/d.test.ts',
    'plugins/builds/test/hostile.test.ts',
    'test/conformance/faults.test.ts'
  ]
  const groups = groupsOf(files)
  t.same(groups.flat().sort(), [...files].sort())
  t.same(
    groups.map(({ length }) => length).sort((a, b) => a - b),
    [1, 1, 1, 20, 21],
    'where an engine is used they are apart'
  )
  t.end()
})

test('where time may be short, what is about the whole comes first, and of the others the commit says which', t => {
  const groups = [
    ...Array.from({ length: 9 }, (_, at) => [`plugins/builds/test/b${at}.test.ts`]),
    ['plugins/users/test/u.test.ts', 'test/http/h.test.ts']
  ]
  const orders = ['one', 'two', 'one'].map(seed => inTurns(groups, seed))
  for (const order of orders) {
    t.same(order[0], groups.at(-1))
    t.same(order.flat().sort(), groups.flat().sort(), 'none is lost')
  }
  t.same(orders[2], orders[0])
  t.not(orders[1]?.at(-1)?.[0], orders[0]?.at(-1)?.[0])
  t.end()
})

test('groups take about as long, and those that take longest begin first', t => {
  const timeOf = (group: readonly string[]): number =>
    group.reduce((sum, file) => sum + (seconds[file] ?? 4), 0)
  const long = Object.keys(seconds).filter(file => file.startsWith('plugins/deployments/'))
  const short = Array.from({ length: 20 }, (_, at) => `plugins/deployments/test/short-${at}.test.ts`)
  const times = groupsOf([...short, ...long, 'plugins/users/test/u.test.ts']).map(timeOf)
  t.equal(times.at(-1), 4)
  t.same(
    times,
    times.toSorted((a, b) => b - a)
  )
  // But for a file that is alone.
  const [most = 0, ...others] = times.filter(time => time > 50)
  t.ok(others.length > 2 && most - (others.at(-1) ?? 0) < 20, times.join())
  t.same(
    Object.keys(seconds).filter(file => !existsSync(join(root, file))),
    [],
    'what is said to take long exists'
  )
  t.end()
})

/** What tap says of a group of such files, in our report, and which failed. */
function report(
  t: Test,
  files: Readonly<Record<string, string>>,
  environment: Readonly<Record<string, string>> = {}
) {
  const folder = mkdtempSync(join(tmpdir(), 'busbar-groups-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const written = Object.entries(files).map(([name, text]) => {
    const path = join(folder, name)
    writeFileSync(path, `import { test } from 'tap'\n${text}`)
    return path
  })
  const program = `.lab/groups/of-a-test-${process.pid}.mjs`
  t.ok(isGroup(program))
  mkdirSync(join(root, dirname(program)), { recursive: true })
  t.teardown(() => rmSync(join(root, program), { force: true }))
  writeFileSync(
    join(root, program),
    `import { runGroup } from '../../scripts/test-group.mjs'\nrunGroup(${JSON.stringify(written)})\n`
  )
  const failed = join(folder, 'failed')
  const { stdout } = spawnSync('node', ['node_modules/tap/dist/esm/run.mjs', 'run', program], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: folder, FAILED_FILES: failed, ...environment }
  })
  const shown = stdout.replaceAll(`${folder}/`, '').replace(/ {2}[\d.]+ s$/gm, '')
  return { shown, failed: readFileSync(failed, 'utf8').replaceAll(`${folder}/`, '') }
}

test('files of a group end one after another, and are reported as if each had run alone', t => {
  const { shown, failed } = report(t, {
    'a.test.ts': `const order: string[] = []
globalThis.order = order
test('one', async t => { t.teardown(() => order.push('down')); order.push('one'); t.pass() })
test('two', async t => { order.push('two'); t.pass() })`,
    'b.test.ts': `const seen = globalThis.order.join(' ')
test('it begins when the other has ended', async t => { t.equal(seen, 'one down two') })
test('it fails', async t => { t.equal(1, 2) })`,
    'c.test.ts': `test('it goes on', async t => { t.pass() })`,
    'd.test.ts': `throw new Error('it does not load')`
  })
  t.match(shown, /^ok {3}a\.test\.ts {2}2 passed$/m)
  t.match(shown, /^FAIL b\.test\.ts {2}1 passed, 1 FAILED$/m)
  t.match(shown, /not ok: it fails/)
  t.match(shown, /^ok {3}c\.test\.ts {2}1 passed$/m)
  t.match(shown, /^FAIL d\.test\.ts {2}0 passed, 1 FAILED$/m)
  t.match(shown, /it does not load/)
  t.match(shown, /^4 passed, 2 failed$/m)
  t.equal(failed, 'b.test.ts\nd.test.ts\n')
  t.end()
})

test('files that are not begun as it is too late are told, and are no passed ones', t => {
  const until = String(Date.now() + 3_600_000)
  const files = {
    'a.test.ts': `test('it takes all the time', async t => {
  process.env.TEST_UNTIL = '1'
  t.pass()
})`,
    'b.test.ts': `test('it is not begun', async t => { t.fail() })`
  }
  const { shown, failed } = report(t, files, { TEST_UNTIL: until })
  t.match(shown, /^ok {3}a\.test\.ts {2}1 passed$/m)
  t.match(shown, /^LEFT OUT b\.test\.ts$/m)
  t.match(shown, /^1 files left out for want of time$/m)
  t.match(shown, /^1 passed, 0 failed$/m)
  t.equal(failed, '')
  t.end()
})

test('a group whose process ends before its end fails, as a whole', t => {
  const { shown, failed } = report(t, {
    'a.test.ts': `test('one', async t => { t.pass() })`,
    'b.test.ts': `test('it ends the process', async t => { process.exit(7) })`
  })
  t.match(shown, /^ok {3}a\.test\.ts {2}1 passed$/m)
  t.match(shown, /^FAIL /m)
  t.match(shown, / passed, [1-9]\d* failed$/m)
  t.match(failed, /\.test/)
  t.end()
})

test('a file that waits for ever fails by its name, its group goes on, and what holds the process does not', t => {
  const { shown, failed } = report(
    t,
    {
      'a.test.ts': `import { createServer } from 'node:net'
createServer().listen(0)
test('it ends', async t => { t.pass() })
test('it waits', async t => { await new Promise(() => {}) })`,
      'b.test.ts': `test('it is begun', async t => { t.pass() })`
    },
    { TEST_FILE_SECONDS: '2' }
  )
  t.match(shown, /^FAIL a\.test\.ts {2}1 passed, 1 FAILED$/m)
  t.match(shown, /it waits/)
  t.match(shown, /^ok {3}b\.test\.ts {2}1 passed$/m)
  t.equal(failed, 'a.test.ts\n')
  t.end()
})
