import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
interface Packed {
  /** The tarball that `npm publish` takes and `npm install` installs. */
  readonly file: string
  /** The paths of what is in it. */
  readonly contents: readonly string[]
}

/** Makes the package of the client, as it is published: ESM, its types, and nothing of the platform beside it. */
export async function packClient(root: string, destination: string): Promise<Packed> {
  const source = join(root, 'sdk/client')
  const stage = await mkdtemp(join(tmpdir(), 'busbar-client-'))
  try {
    const compiler = join(root, 'node_modules/.bin/tsc')
    await plain(compiler, ['--project', source, '--outDir', join(stage, 'dist')], stage)
    for (const file of ['package.json', 'README.md']) await copyFile(join(source, file), join(stage, file))
    await copyFile(join(root, 'LICENSE'), join(stage, 'LICENSE'))
    const stdout = await plain('npm', ['pack', '--json', '--pack-destination', destination], stage)
    const [packed] = JSON.parse(stdout) as [{ filename: string; files: Array<{ path: string }> }]
    return { file: join(destination, packed.filename), contents: packed.files.map(({ path }) => path) }
  } finally {
    await rm(stage, { recursive: true, force: true })
  }
}

/** Runs a program without what the test runner puts into NODE_OPTIONS of every process; what it says. */
export async function plain(
  command: string,
  args: readonly string[],
  folder: string,
  variables: Readonly<Record<string, string>> = {}
): Promise<string> {
  const given = Object.entries(variables).map(([name, value]) => `${name}=${value}`)
  const { stdout } = await run('env', ['-u', 'NODE_OPTIONS', ...given, command, ...args], { cwd: folder })
  return stdout
}
