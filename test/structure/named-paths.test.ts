import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { missingPaths } from './named-paths.js'

const root = join(import.meta.dirname, '../..')

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8'
})
  .split('\n')
  .filter(path => path !== '' && existsSync(join(root, path)))

/** Made by programs, or about what programs make. */
const generated = new Set(['package.json', 'package-lock.json', 'docs/sdk-surface.txt', 'CHANGELOG.md'])

/** Each file, and the folders above it; `plugins/*` stands for any plugin. */
const known = new Set<string>()
for (const file of files)
  for (const path of [file, file.replace(/^(?:examples\/)?plugins\/[^/]+/, 'plugins/*')])
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) known.add(path.slice(0, end))
const folders = [...new Set(files.flatMap(file => /^[^/]+(?=\/)/.exec(file)?.[0] ?? []))]

test('every path that documents and code name exists', async t => {
  const read = files.filter(
    file => (/\.(?:md|ts|mjs|yml|sh)$|^\.ci\//.test(file) || file === 'Dockerfile') && !generated.has(file)
  )
  t.ok(read.length > 500, 'the files were found')
  t.same(
    read.flatMap(file =>
      missingPaths(file, readFileSync(join(root, file), 'utf8'), {
        folders,
        has: path => known.has(path)
      }).map(({ line, path }) => `${file}:${line}: ${path}`)
    ),
    []
  )
})

test('what counts as a path, and what does not', async t => {
  const project = {
    folders: ['core', 'lab', '.ci', 'test'],
    has: (path: string) =>
      ['core', 'core/main.ts', '.ci/run', 'plugins/*/test/kit.ts', 'docs/a.md'].includes(path)
  }
  const missing = (file: string, text: string): string[] =>
    missingPaths(file, text, project).map(({ path }) => path)
  t.same(missing('docs/a.md', 'see `core/gone.ts`, `core/main.ts` and lab/gone.ts, and `node lab/b.ts 1`'), [
    'core/gone.ts',
    'lab/b.ts'
  ])
  t.same(missing('docs/a.md', '[here](a.md#part), [there](../core/gone.ts), [away](https://example.com/x)'), [
    'core/gone.ts'
  ])
  t.same(missing('core/main.ts', "// `lab/gone.ts`\nconst a = 'core/main.js'\nconst b = 'core/gone/'"), [
    'lab/gone.ts',
    'core/gone'
  ])
  t.same(missing('test/a.test.ts', `const a = 'core/made-up.ts' // as in ${'lab'}/gone.ts`), [
    ['lab', 'gone.ts'].join('/')
  ])
  t.same(
    missing(
      'core/main.ts',
      '// core/*.ts, core/<name>/x, ../core/x, https://example.com/core/x, ./.ci/run, test/kit.ts, core/.'
    ),
    []
  )
})
