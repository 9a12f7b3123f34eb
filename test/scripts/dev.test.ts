import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bounded } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'

const root = join(import.meta.dirname, '../..')

/** A platform that says what it is, and ends when it is asked to. */
const main = (version: string): string =>
  `process.once('SIGTERM', () => { console.log('ended ${version}'); process.exit(0) }); setInterval(() => {}, 1000); console.log('serves ${version}')\n`

test('npm run dev builds and starts again what has changed, also after it could not start, and ends with SIGTERM', async t => {
  const directory = t.testdir()
  for (const folder of ['scripts', 'core', 'embedded-postgres', 'sdk', 'plugins/x/test'])
    await mkdir(join(directory, folder), { recursive: true })
  for (const script of ['build', 'build.mjs', 'start.mjs', 'dev.mjs'])
    await cp(join(root, 'scripts', script), join(directory, 'scripts', script), { recursive: true })
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'))
  await writeFile(
    join(directory, 'package.json'),
    JSON.stringify({ type: 'module', scripts: { start: 'exec node scripts/start.mjs' } })
  )
  const write = async (text: string): Promise<void> => await writeFile(join(directory, 'core/main.ts'), text)
  await write(main('one'))

  const dev = spawn(process.execPath, ['scripts/dev.mjs'], { cwd: directory })
  t.teardown(() => dev.kill('SIGKILL'))
  let said = ''
  for (const stream of [dev.stdout, dev.stderr])
    stream.on('data', chunk => {
      said += String(chunk)
    })
  const says = async (words: string): Promise<void> => {
    await until(() => said.includes(words), `${words}\n${said}`)
  }
  await says('serves one')
  await writeFile(join(directory, 'plugins/x/test/y.test.ts'), '')
  await writeFile(join(directory, 'plugins/x/README.md'), '')

  await write(main('two'))
  await says('serves two')
  t.match(said, /core\/main\.ts has changed\.[\s\S]*ended one/)
  t.equal(said.match(/has changed/g)?.length, 1, 'tests and texts are nothing to start again for')

  await write('const = \n')
  await says('It starts again when a source changes')
  await write(main('three'))
  await says('serves three')

  dev.kill('SIGTERM')
  t.same(await bounded(async () => await once(dev, 'exit'), { ms: 30_000, what: 'its end' }), [0, null])
  await says('ended three')
})
