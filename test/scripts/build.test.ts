import { execFile } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
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
  await cp(join(root, 'scripts/build.mjs'), join(directory, 'scripts/build.mjs'))
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
  'core/main.ts': 'export const answer: number = 42\n',
  'plugins/x/plugin.json': '{ "id": "x" }\n',
  'plugins/x/index.ts': "import { answer } from '../../core/main.js'\nexport default answer\n",
  'plugins/x/test/x.test.ts': 'throw new Error()\n',
  'plugins/x/README.md': '# x\n'
}

test('TypeScript is transpiled file by file, what else a plugin has is copied, and its tests stay out', async t => {
  const { build, output } = await project(t, sources)
  t.equal(await build(), 'built 3 files, removed 0\n')
  const { default: answer } = (await import(output('plugins/x/index.js'))) as { default: number }
  t.equal(answer, 42)
  t.ok(existsSync(output('core/main.js.map')))
  t.equal(readFileSync(output('plugins/x/plugin.json'), 'utf8'), sources['plugins/x/plugin.json'])
  t.notOk(existsSync(output('plugins/x/test')))
  t.notOk(existsSync(output('plugins/x/README.md')))
})

test('a second build touches only what has changed', async t => {
  const { build, write, output } = await project(t, sources)
  await build()
  const untouched = statSync(output('core/main.js')).ctimeMs
  t.equal(await build(), '')
  await write('plugins/x/index.ts', 'export default 7\n')
  t.equal(await build(), 'built 1 files, removed 0\n')
  t.match(readFileSync(output('plugins/x/index.js'), 'utf8'), /7/)
  t.equal(statSync(output('core/main.js')).ctimeMs, untouched)
})

test('the output of a source that is gone is removed, and its folder too', async t => {
  const { build, directory, output } = await project(t, sources)
  await build()
  await rm(join(directory, 'plugins'), { recursive: true })
  t.equal(await build(), 'built 0 files, removed 3\n')
  t.notOk(existsSync(output('plugins')))
  t.ok(existsSync(output('core/main.js')))
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
    Array.from({ length: 60 }, (_, i) => [`core/part-${i}.ts`, `export const part: number = ${i}\n`])
  )
  const { build, output } = await project(t, { ...sources, ...many })
  await Promise.all([build(), build(), build()])
  for (let i = 0; i < 60; i++) t.match(readFileSync(output(`core/part-${i}.js`), 'utf8'), `part = ${i}`)
  t.equal(await build(), '', 'nothing is left to do, and nothing half-written is left')
})

test('a file that does not compile is named with its line, and the last good output stays', async t => {
  const { build, write, output } = await project(t, sources)
  await build()
  await write('core/main.ts', 'export const answer: number = \n')
  await t.rejects(build(), { code: 1, stderr: /core\/main\.ts:2:\d+: ERROR/ })
  t.match(readFileSync(output('core/main.js'), 'utf8'), /42/)
})
