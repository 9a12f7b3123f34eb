import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'tap'
import { checkParts, faultIn, readVerdicts, writeVerdicts } from './patterns/linear-check.js'
import { type Pattern, patternsIn } from './patterns/pattern-list.js'

const root = join(import.meta.dirname, '../..')
const { version } = createRequire(import.meta.url)('recheck/package.json') as { version: string }
/** Where `npm ci` leaves it. */
const known = join(root, `.lab/patterns-${version}.json`)

/** Made of a text that is known only at run time, and why that text is ours. */
const builtOnPurpose: ReadonlyArray<readonly [file: string, reason: string]> = [
  ['core/log/credential-shapes.ts', 'the source of a literal that stands above it'],
  ['plugins/builds/builders/tool-variables.ts', 'names out of a list that stands above it']
]

// What ships and what serves it. A test reads its own output.
const modules = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.mjs', '*.js'],
  { cwd: root, encoding: 'utf8' }
)
  .split('\n')
  .filter(
    path =>
      /^(core|embedded-postgres|sdk|plugins|examples|scripts|bench)\//.test(path) &&
      !/(^|\/)test\//.test(path)
  )
  .map(path => ({
    path,
    ...patternsIn(readFileSync(join(root, path), 'utf8'), path.endsWith('.ts') ? 'ts' : 'js')
  }))

const written = ({ source, flags }: Pattern): string => `/${source}/${flags}`
const verdicts = readVerdicts(known)

test('every pattern takes time in proportion to the text', { timeout: 600_000 }, async t => {
  const all = modules.flatMap(({ patterns }) => patterns)
  t.ok(all.length > 200, 'the patterns were found')
  await checkParts(all, verdicts)
  writeVerdicts(known, verdicts)
  t.same(
    modules.flatMap(({ path, patterns }) =>
      patterns.flatMap(pattern => {
        const fault = faultIn(pattern, verdicts)
        return fault === null ? [] : [`${path}: ${written(pattern)}: ${fault}`]
      })
    ),
    []
  )
})

test('no pattern is made of text that is known only at run time', async t => {
  const building = modules.filter(({ built }) => built.length > 0)
  t.same(
    building
      .filter(({ path }) => !builtOnPurpose.some(([file]) => file === path))
      .map(({ path, built }) => `${path}: ${built.join(', ')}`),
    []
  )
  t.same(
    builtOnPurpose.filter(([file]) => !building.some(({ path }) => path === file)),
    [],
    'no exception is left over'
  )
})

test('node searches with its usual engine: the experimental one takes longer where it is meant to help', async t => {
  const written = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8'
  })
    .split('\n')
    .filter(path =>
      /(?:^|\/)(?:package\.json|Dockerfile|\.taprc|[^/]+\.ya?ml)$|^\.ci\/|\.(?:mjs|ts)$/.test(path)
    )
    .filter(path => path !== 'test/structure/patterns.test.ts')
  t.ok(written.includes('package.json') && written.includes('Dockerfile'))
  t.same(
    written.filter(path => /experimental[-_]regexp/.test(readFileSync(join(root, path), 'utf8'))),
    []
  )
})

const slow: ReadonlyArray<readonly [title: string, pattern: RegExp]> = [
  ['a repetition in a repetition', /^(a+)+$/],
  ['two that take the same characters', /^\s*x?\s*$/],
  ['a search for the end of a run', /\s+$/],
  ['a search that starts over behind every beginning', /pack .*corrupt/],
  ['the same behind another alternative', /early EOF|pack .*corrupt/i],
  ['a string without an end, again and again', /(?:[^\s"']+|"(?:\\.|[^"\\])*"|'[^']*')+/g],
  ['a look ahead through the whole rest, again and again', /a(?!.*b)/g],
  ['an optional part that is tried in vain, again and again', /a(?:a+c)?/g]
]

const quick: ReadonlyArray<readonly [title: string, pattern: RegExp]> = [
  ['an anchored run', /^[\w.-]+$/],
  ['a run that its beginning is no part of', /name "[^"]*" taken/],
  ['runs that are replaced', /[^a-z0-9]+/g],
  ['words', /no space left on device|disk quota exceeded/i]
]

test('the check finds what takes longer, and nothing else', { timeout: 600_000 }, async t => {
  await checkParts(
    [...slow, ...quick].map(([, pattern]) => pattern),
    verdicts
  )
  for (const [title, pattern] of slow) t.type(faultIn(pattern, verdicts), 'string', title)
  for (const [title, pattern] of quick) t.equal(faultIn(pattern, verdicts), null, title)
})

test('a machine that is busy with others changes no verdict', { timeout: 600_000 }, async t => {
  // Decided by trials, as it looks ahead.
  const pattern = { source: String.raw`^\/(?!\/)\S*$`, flags: '' }
  const asked = new Map<string, string | null>()
  await checkParts([{ source: 'a+b', flags: '' }], asked)
  const checkers = readFileSync('/proc/thread-self/children', 'utf8')
    .split(' ')
    .filter(pid => pid !== '' && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('recheck'))
    .map(Number)
  t.ok(checkers.length > 0, 'the checkers are processes of their own')
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => {
    for (const pid of checkers) process.kill(pid, name)
  }
  // Of 315 ms it gets 15: longer than it waits for a try that is not to end.
  let goOn: NodeJS.Timeout | undefined
  const stop = setInterval(() => {
    signal('SIGSTOP')
    goOn = setTimeout(signal, 300, 'SIGCONT')
  }, 315)
  try {
    await checkParts([pattern], asked)
  } finally {
    clearInterval(stop)
    clearTimeout(goOn)
    signal('SIGCONT')
  }
  t.equal(faultIn(pattern, asked), null)
})

test('patterns are found wherever they are written', async t => {
  const code =
    'const a = /x+$/g; const b = new RegExp("y", "i"); const c = RegExp(`z`); const d = { pattern: "^w*$" }; const e = new RegExp(name); const f = new RegExp(`^${name}`, "m")'
  t.same(patternsIn(code, 'ts'), {
    patterns: [
      { source: 'x+$', flags: 'g' },
      { source: 'y', flags: 'i' },
      { source: 'z', flags: '' },
      { source: '^w*$', flags: 'u' }
    ],
    built: ['new RegExp(name)', 'new RegExp(`^${name}`, "m")']
  })
})
