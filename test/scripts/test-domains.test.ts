import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Test, test } from 'tap'

const root = join(import.meta.dirname, '..', '..')

/** What tap says of a file with these tests, and how its process ended. */
function outcome(t: Test, text: string) {
  // Where tap is found from.
  const folder = mkdtempSync(join(root, '.lab', 'domains-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'a.test.ts')
  writeFileSync(file, `import { test } from 'tap'\n${text}`)
  const { stdout, status } = spawnSync('node', ['--import=./scripts/test-loader.mjs', file], {
    cwd: root,
    encoding: 'utf8',
    // Of tap's variables none: it is a run of its own.
    env: { PATH: process.env.PATH, HOME: process.env.HOME }
  })
  const lines = stdout.split('\n').filter(line => /^ *(?:not )?ok /.test(line))
  return { lines: lines.map(line => line.replace(/ # time.*/, '')), status }
}

test('tap asks our domains, which listen to no promise', t => {
  const ours = pathToFileURL(join(root, 'scripts/test-domains.mjs')).href
  // A dependency of tap's, and none of ours.
  const replaced = 'async-hook-domain'
  t.equal(import.meta.resolve(replaced), ours)
  t.end()
})

test('an error that nobody catches fails the test that began what it comes from', t => {
  const { lines, status } = outcome(
    t,
    `test('throws later', async () => { setTimeout(() => { throw new Error('late') }, 1); await new Promise(() => {}) })
test('rejects later', async () => { setTimeout(() => { Promise.reject(new Error('lost')) }, 1); await new Promise(() => {}) })
test('is well', async t => { t.pass('fine') })`
  )
  t.same(lines, [
    '    not ok 1 - late',
    'not ok 1 - throws later',
    '    not ok 1 - lost',
    'not ok 2 - rejects later',
    '    ok 1 - fine',
    'ok 3 - is well'
  ])
  t.equal(status, 1)
  t.end()
})

test('after the end of a test its errors are those of the file', t => {
  const { lines, status } = outcome(
    t,
    `
test('outer', async t => {
  await t.test('inner', async t => { setTimeout(() => { throw new Error('late') }, 20); t.pass('fine') })
  await new Promise(() => {})
})`
  )
  t.match(lines.join('\n'), /^ {8}ok 1 - fine\n {4}ok 1 - inner\n {4}not ok 2 - late\nnot ok 1 - outer$/)
  t.equal(status, 1)
  t.end()
})

test('a listener of the test for errors that nobody catches comes first', t => {
  const { lines, status } = outcome(
    t,
    `test('listens', async t => {
  const heard = new Promise(resolve => process.once('uncaughtException', resolve))
  setTimeout(() => { throw new Error('late') }, 1)
  t.match(await heard, { message: 'late' }, 'heard')
})`
  )
  t.same(lines, ['    ok 1 - heard', 'ok 1 - listens'])
  t.equal(status, 0)
  t.end()
})
