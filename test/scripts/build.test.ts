import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'

const root = join(import.meta.dirname, '../..')
const execute = promisify(execFile)

interface Project {
  readonly directory: string
  write(path: string, text: string): Promise<void>
  build(): Promise<string>
  output(path: string): string
}

/** A project of its own with the real build script. */
async function project(t: Test, files: Record<string, string>): Promise<Project> {
  const directory = t.testdir()
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), text)
  }
  await mkdir(join(directory, 'scripts'))
  for (const script of ['build.mjs', 'build'])
    await cp(join(root, 'scripts', script), join(directory, 'scripts', script), { recursive: true })
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'))
  await write('package.json', '{ "type": "module" }')
  for (const [path, text] of Object.entries(files)) await write(path, text)
  return {
    directory,
    write,
    build: async () => (await execute(process.execPath, [join(directory, 'scripts/build.mjs')])).stdout,
    output: path => join(directory, 'dist', path)
  }
}

const sources = {
  'core/main.ts': "import { answer } from './answer.js'\nexport const half: number = answer / 2\n",
  'core/answer.ts': 'export const answer: number = 42\n',
  'plugins/x/plugin.json': '{ "id": "x" }\n',
  'plugins/x/index.ts':
    "import { answer } from '../../core/answer.js'\nimport { own } from './deep/own.js'\nexport default { answer, own }\n",
  'plugins/x/deep/own.ts':
    "export const own = { address: import.meta.url, late: async () => await import('./late.js') }\n",
  'plugins/x/deep/late.ts': "export const late = 'loaded when it is needed'\n",
  'plugins/x/test/x.test.ts': 'throw new Error()\n',
  'plugins/x/README.md': '# x\n'
}

interface X {
  readonly answer: number
  readonly own: { readonly address: string; late(): Promise<{ readonly late: string }> }
}

test('what is found by its path is built with all it needs, and what else a plugin has is copied, but for its tests', async t => {
  const { build, output } = await project(t, sources)
  await build()
  const { default: x } = (await import(output('plugins/x/index.js'))) as { default: X }
  t.equal(x.answer, 42)
  t.equal((await x.own.late()).late, 'loaded when it is needed')
  t.ok(existsSync(output('core/main.js.map')))
  t.notOk(existsSync(output('core/answer.js')), 'a module of its own that nothing looks for')
  t.equal(readFileSync(output('plugins/x/plugin.json'), 'utf8'), sources['plugins/x/plugin.json'])
  t.notOk(existsSync(output('plugins/x/test')))
  t.notOk(existsSync(output('plugins/x/README.md')))
})

test('a module that several need is there once', async t => {
  const { build, output } = await project(t, {
    ...sources,
    'core/answer.ts': 'export const answer = Object.assign(Object(42), { asked: [] as string[] })\n',
    'core/main.ts': "export { answer } from './answer.js'\n"
  })
  await build()
  const { answer } = (await import(output('core/main.js'))) as { answer: object }
  const { default: x } = (await import(output('plugins/x/index.js'))) as { default: X }
  t.equal(x.answer, answer)
})

test('the address of a module is where it would lie by itself, whatever it is built into and wherever dist/ is moved', async t => {
  const { build, output, directory } = await project(t, sources)
  await build()
  const moved = join(directory, 'elsewhere/dist')
  await cp(output('.'), moved, { recursive: true })
  const { default: x } = (await import(join(moved, 'plugins/x/index.js'))) as { default: X }
  t.equal(x.own.address, pathToFileURL(join(moved, 'plugins/x/deep/own.js')).href)
})

test('what is built is ASCII, and its patterns match what they did', async t => {
  const { build, output } = await project(t, {
    'core/main.ts':
      "export const found = ['a…', '🔥', 'é'].map(text => /…$/.test(text) || /^[🔥é]$/u.test(text))\nexport const text = `…🔥`\nexport const escaped = /^\\…$/.test('…')\n"
  })
  await build()
  const built = output('core/main.js')
  t.notMatch(readFileSync(built, 'utf8'), /[^\0-\x7f]/)
  t.match(await import(pathToFileURL(built).href), { found: [true, true, true], text: '…🔥', escaped: true })
})

test('a second build writes only what is different', async t => {
  const { build, write, output } = await project(t, sources)
  await build()
  const untouched = statSync(output('core/main.js')).ctimeMs
  t.equal(await build(), '')
  await write('plugins/x/deep/own.ts', 'export const own = 7\n')
  t.match(await build(), /^built [12] files/)
  t.match(readFileSync(output('plugins/x/index.js'), 'utf8'), /7/)
  await write('plugins/x/plugin.json', '{ "id": "y" }\n')
  t.match(await build(), /^built 1 files/)
  await write('core/main.ts', sources['core/main.ts'])
  t.equal(await build(), '', 'written again as it was')
  t.equal(statSync(output('core/main.js')).ctimeMs, untouched)
})

test('the output of a source that is gone is removed, and its folder too', async t => {
  const { build, directory, output } = await project(t, sources)
  await build()
  await rm(join(directory, 'plugins'), { recursive: true })
  t.match(await build(), /removed 2\n/)
  t.notOk(existsSync(output('plugins')))
  t.ok(existsSync(output('core/main.js')))
})

test('a platform that runs may still load what the build before had, and no older one', async t => {
  const { build, write, output } = await project(t, sources)
  const late = async (text: string): Promise<string[]> => {
    await write('plugins/x/deep/late.ts', `export const late = '${text}'\n`)
    await build()
    return readdirSync(output('shared'))
      .filter(file => file.endsWith('.js'))
      .map(file => readFileSync(output(`shared/${file}`), 'utf8'))
      .flatMap(code => /(first|second|third) text/.exec(code)?.[1] ?? [])
      .sort()
  }
  t.same(await late('first text'), ['first'])
  t.same(await late('second text'), ['first', 'second'])
  t.same(await late('third text'), ['second', 'third'])
})

test('an output that was lost is made again', async t => {
  const { build, output } = await project(t, sources)
  await build()
  await rm(output('core/main.js'))
  t.equal(await build(), 'built 1 files, removed 0\n')
  t.ok(existsSync(output('core/main.js')))
})

test('builds at the same time do not disturb each other', async t => {
  const many = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [
      `plugins/part-${i}/index.ts`,
      `import { answer } from '../../core/answer.js'\nexport const part: number = ${i} + answer\n`
    ])
  )
  const { build, output } = await project(t, { ...sources, ...many })
  await Promise.all([build(), build(), build()])
  for (let i = 0; i < 60; i++) {
    const { part } = (await import(output(`plugins/part-${i}/index.js`))) as { part: number }
    t.equal(part, i + 42)
  }
  t.equal(await build(), '', 'nothing is left to do, and nothing half-written is left')
})

test('a file that does not compile is named with its line, and the last good output stays', async t => {
  const { build, write, output } = await project(t, sources)
  await build()
  await write('core/answer.ts', 'export const answer: number = \n')
  await t.rejects(build(), { code: 1, stderr: /core\/answer\.ts:2:\d+: ERROR/ })
  const { half } = (await import(output('core/main.js'))) as { half: number }
  t.equal(half, 21)
})
