import { test } from 'tap'
import { IgnoreMatcher, type Trail } from '../context/ignore-matcher.js'
import { parseIgnoreFile } from '../context/ignore-patterns.js'

/** Whether a file with these lines ignores a path. */
function ignores(text: string, path: string): boolean {
  const matcher = new IgnoreMatcher(parseIgnoreFile(text))
  return path.split('/').reduce<Trail>((trail, name) => matcher.enter(trail, name), matcher.root).isIgnored
}

type Row = readonly [patterns: string, ignored: readonly string[], kept: readonly string[]]

function table(title: string, rows: readonly Row[]): void {
  void test(title, t => {
    for (const [patterns, ignored, kept] of rows) {
      for (const path of ignored)
        t.equal(ignores(patterns, path), true, `${JSON.stringify(patterns)} ignores ${JSON.stringify(path)}`)
      for (const path of kept)
        t.equal(ignores(patterns, path), false, `${JSON.stringify(patterns)} keeps ${JSON.stringify(path)}`)
    }
    t.end()
  })
}

table('a pattern begins at the root, and covers what is in a directory', [
  ['a', ['a', 'a/b', 'a/b/c'], ['b', 'b/a', 'ab', 'A']],
  ['a/b', ['a/b', 'a/b/c'], ['a', 'b', 'a/bc', 'x/a/b']],
  ['docs/', ['docs', 'docs/x'], ['x/docs']],
  ['/a', ['a', 'a/b'], ['b/a']],
  ['//a', ['a'], []],
  ['./a', ['a'], ['b/a']],
  ['a//b', ['a/b'], []],
  ['a/../b', ['b'], ['a']],
  ['../a', [], ['a', 'b/a']],
  ['a/..', [], ['a', 'b']],
  ['/', [], ['a']],
  ['.', [], ['a', '.a']],
  ['', [], ['a']]
])

table('a star and a question mark stay within a name', [
  ['*', ['a', '.a', 'a/b', 'a/b/c'], []],
  ['*.go', ['x.go', '.go', 'x.go/y'], ['x/y.go', 'x.gox', 'xgo']],
  ['a*', ['a', 'ab', 'a/b', 'abc/d'], ['ba']],
  ['a*/b', ['ab/b', 'a/b', 'a/b/c'], ['a/c/b', 'ab', 'b']],
  ['*/b', ['a/b', 'xyz/b/c'], ['b', 'a/x/b']],
  ['a*b*c*d*e*/f', ['axbxcxdxe/f', 'axbxcxdxexxx/f'], ['axbxcxdxe/xxx/f', 'axbxcxdxexxx/fff']],
  ['a*b?c*x', ['abxbbxdbxebxczzx'], ['abxbbxdbxebxczzy']],
  ['*x', ['xxx'], ['xxy']],
  ['a?b', ['axb', 'a☺b', 'a😀b', 'a\nb'], ['ab', 'a/b', 'axxb']],
  ['a???b', ['axyzb'], ['a☺b']],
  ['.*', ['.a', '.git/config'], ['a', 'a/.b']],
  ['a*b', ['a\nb'], ['a/b']]
])

table('two stars go through any number of directories', [
  ['**', ['a', 'a/b/c', 'a\nb'], []],
  ['**/', ['a', 'a/b'], []],
  ['**/a', ['a', 'x/a', 'x/y/a', 'x/a/y', 'x\n/a'], ['xa', 'x/ya', 'ax']],
  ['**a', ['a', 'xa', 'x/a', 'x/ya'], ['ax', 'x']],
  ['**/*.txt', ['a.txt', 'x/a.txt', 'x/y/a.txt'], ['a.txt2', 'x/txt']],
  ['**/**/*.txt', ['a.txt', 'x/y/a.txt'], ['x/y/a.md']],
  ['**/**', ['a', 'a/b'], []],
  ['a/**', ['a/b', 'a/b/c'], ['a', 'ab', 'b/a/c']],
  ['a**', ['a', 'ab', 'ab/c', 'a/b'], ['ba']],
  ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b', 'a/x/y/b/c'], ['ab', 'a/xb', 'b', 'a/x']],
  ['a**/*.txt', ['a/x.txt', 'a/b/c/x.txt', 'ax.txt', 'ab/x.txt'], ['b/x.txt']],
  ['a**b', ['ab', 'a/b', 'axx/b', 'a/x/y/b'], ['axb', 'a/xb']],
  ['**a*', ['a', 'ab', 'x/ab'], ['xa', 'x/ya']],
  ['**/b/*', ['b/x', 'a/b/x'], ['b', 'a/b', 'x/y']],
  ['**/b/**', ['b/x', 'a/b/x/y'], ['b', 'a/b']],
  ['***', ['a', 'a/b'], []],
  ['*****x', ['x', 'ax', 'a/bx'], ['a/b', 'xa']],
  ['a*.txt**', ['a.txt', 'ab.txt', 'a.txtx', 'a.txt/x'], ['a/b.txt']],
  ['**/node_modules', ['node_modules', 'a/node_modules/b'], ['node_modules2']],
  ['**/.foo', ['.foo', 'a/.foo'], ['bar.foo']],
  ['**/*a', [], ['x\ny/b']],
  ['**/*b', ['y/b'], ['x\ny/b/c']]
])

table('brackets are one character out of several', [
  ['a[b-d]e', ['ace'], ['ae', 'aae', 'abbe']],
  ['a[^b-d]e', ['aze', 'a☺e', 'a/e'], ['ace', 'ae']],
  ['[a-ζ]*', ['α', 'abc'], ['A']],
  ['[!a]', ['!', 'a'], ['b']],
  ['[\\]a]', [']', 'a'], ['\\']],
  ['[\\-x]', ['-', 'x'], ['a']],
  ['[x\\-]', ['-', 'x'], ['z']],
  ['a]', ['a]'], ['a']],
  ['[a^]b', ['ab', '^b'], ['b']],
  ['[.]a', ['.a'], ['xa']]
])

table('a backslash takes the meaning from the character after it; other signs have none', [
  ['a\\*b', ['a*b'], ['ab', 'axb']],
  ['a\\\\', ['a\\'], ['a']],
  ['\\!a', ['!a'], ['a']],
  ['\\#a', ['#a'], ['a']],
  ['(a+)+b', ['(a+)+b'], ['ab', 'aab']],
  ['a.|)$(}+{bc', ['a.|)$(}+{bc'], ['abc']],
  ['c++.*', ['c++.txt'], ['ccc.txt']],
  ['abc.d?f', ['abc.def'], ['abcxdef']]
])

table('lines are read as Docker reads them', [
  ['# a\n#b\na', ['a'], ['b', '# a']],
  [' # a', ['# a'], ['a']],
  ['\uFEFFa\nb', ['a', 'b'], []],
  ['\uFEFF# a\nb', ['b'], ['# a']],
  ['a\r\nb\r\n', ['a', 'b'], []],
  ['\n\n  a  \n\t\n', ['a'], []],
  ['a b', ['a b'], ['a', 'b']],
  ['a /', ['a'], ['a ']],
  ['*\n/!a', ['b'], ['a']],
  ['\u00a0a\u3000', ['a'], []]
])

table('an exclamation mark takes in again, and the last pattern that matches decides', [
  ['*\n!a', ['b', 'b/a'], ['a', 'a/b']],
  ['!a\n*', ['a', 'b'], []],
  ['docs\n!docs/README.md', ['docs', 'docs/x'], ['docs/README.md']],
  ['docs/\n! /docs/keep', ['docs/x'], ['docs/keep', 'docs/keep/y']],
  ['**\n!util/web\nutil/web/foo', ['util', 'util/web/foo', 'x'], ['util/web', 'util/web/x']],
  ['*.md\n!README*.md\nREADME-secret.md', ['x.md', 'README-secret.md'], ['README.md', 'README-x.md']],
  ['**\n!**/*.ts', ['a', 'a/b.js'], ['a.ts', 'a/b.ts', 'a/b.ts/c']],
  ['!!a', [], ['!a', 'a']],
  ['*\n!!a', ['a'], ['!a']],
  // An exception that changes nothing where it matches is not remembered below.
  ['a/b\n!a', ['a/b'], ['a', 'a/c']]
])

test('what Docker refuses is refused with its reason', t => {
  for (const [pattern, reason] of [
    ['!', /names nothing/],
    ['! ', /names nothing/],
    ['!./ /', /names nothing/],
    ['!/', /names nothing/],
    ['[', /without its \]/],
    ['a[', /without its \]/],
    ['[^', /without its \]/],
    ['[^bc', /without its \]/],
    ['[]a]', /needs a backslash/],
    ['[-]', /needs a backslash/],
    ['[x-]', /needs a backslash/],
    ['[-x]', /needs a backslash/],
    ['[a-b-c]', /needs a backslash/],
    ['a\\', /ends in a backslash/],
    ['[a\\', /ends in a backslash/],
    ['*/[z-a]', /runs backwards/],
    ['[Local-Only]/', /runs backwards/]
  ] as const)
    t.throws(() => parseIgnoreFile(pattern), { message: reason }, pattern)
  t.end()
})

/** As Docker writes it: an expression for each pattern, tried on the path and on each directory above it. */
function slowly(text: string, path: string): boolean {
  const expression = (pattern: string) => {
    if (/^\*\*[^*?[\\]*$/.test(pattern)) {
      const rest = pattern.slice(2)
      return (candidate: string) => candidate.endsWith(rest) || `/${candidate}` === rest
    }
    let source = '^'
    for (let at = 0; at < pattern.length; at++) {
      if (pattern.startsWith('**', at)) {
        at += pattern[at + 2] === '/' ? 2 : 1
        source += at === pattern.length - 1 ? '.*' : '(.*/)?'
      } else {
        const sign = pattern.charAt(at)
        source += sign === '*' ? '[^/]*' : sign === '?' ? '[^/]' : sign
      }
    }
    const compiled = new RegExp(`${source}$`)
    return (candidate: string) => compiled.test(candidate)
  }
  const parts = path.split('/')
  let above: boolean[] | undefined
  let isIgnored = false
  for (let depth = 1; depth <= parts.length; depth++) {
    const candidate = parts.slice(0, depth).join('/')
    isIgnored = false
    above = text.split('\n').map((line, index) => {
      const isException = line.startsWith('!')
      if (
        above?.[index] !== true &&
        (isException !== isIgnored || !expression(isException ? line.slice(1) : line)(candidate))
      )
        return false
      isIgnored = !isException
      return true
    })
  }
  return isIgnored
}

test('thousands of random patterns decide as Docker decides', t => {
  let seed = 20_261
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % below
  }
  const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T
  const word = (letters: readonly string[], length: number): string =>
    Array.from({ length: 1 + random(length) }, () => pick(letters)).join('')
  let differences = 0
  let ignored = 0
  for (let round = 0; round < 8000; round++) {
    const line = () =>
      pick(['', '', '!']) +
      Array.from({ length: 1 + random(3) }, () =>
        pick(['**', '*', word(['a', 'b', '*', '?', '**', 'c', '[ab]', '[^a]'], 5), word(['a', 'b'], 2)])
      ).join('/')
    const text = Array.from({ length: 1 + random(3) }, line).join('\n')
    const path = Array.from({ length: 1 + random(4) }, () => word(['a', 'b', 'c'], 3)).join('/')
    const expected = slowly(text, path)
    if (expected) ignored++
    if (ignores(text, path) !== expected && differences++ < 5)
      t.fail(`${JSON.stringify(text)} on ${path}: Docker says ${expected}`)
  }
  t.equal(differences, 0)
  t.ok(ignored > 1000 && ignored < 7000, `${ignored} were ignored`)
  t.end()
})

test('patterns full of stars cost no more than their length', t => {
  const stars = (index: number) => `**/${'*a'.repeat(7)}*?[a-z]${index}x`
  const patterns = parseIgnoreFile(Array.from({ length: 500 }, (_, index) => stars(index)).join('\n'))
  const matcher = new IgnoreMatcher(patterns)
  const places = patterns.reduce((sum, pattern) => sum + pattern.places.length + 1, 0)
  t.ok(places > 10_000)
  let characters = 0
  let ignored = 0
  for (let folder = 0; folder < 100; folder++) {
    const trail = matcher.enter(matcher.root, `folder-${folder}`)
    for (let file = 0; file < 200; file++) {
      const name = `${'a'.repeat(10)}${file}`
      characters += name.length + 1
      if (matcher.enter(trail, name).isIgnored) ignored++
    }
  }
  t.equal(ignored, 0)
  t.ok(
    matcher.steps <= (characters + 1000) * Math.ceil(places / 32),
    `${matcher.steps} steps for 20 000 paths`
  )
  t.ok(matcher.steps < 120_000_000, `${matcher.steps} steps`)
  t.end()
})
