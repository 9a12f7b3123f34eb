/**
 * Threads that a test's platform starts. Each loads TypeScript anew, and every third-party plugin that is loaded starts
 * one: a second and a half of processor time with tsx. So what runs in them is bundled once a process, as it is, and a
 * thread loads that.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundledTypebox } from './test-typebox.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const folder = join(root, '.lab', 'threads')
const loader = new URL('test-thread-loader.mjs', import.meta.url).href

/** What `package.json` exports to plugins, but for the test kit and the client. */
const exported = () => [
  'sdk/index.ts',
  'sdk/http1/index.ts',
  ...readdirSync(join(root, 'plugins'))
    .map(id => `plugins/${id}/api.ts`)
    .filter(path => existsSync(join(root, path)))
]
const workers = ['core/plugins/rehearsal-worker.ts', 'core/event-loop/stack-sampler-worker.ts']

let made

/** The module that a thread registers in place of tsx. */
export async function threadLoader() {
  made ??= bundle()
  return `${loader}?bundles=${encodeURIComponent(await made)}`
}

/** The URL of the folder with the bundles, which is named by what is in it. */
async function bundle() {
  const { build } = await import('esbuild')
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [...workers, ...exported()].map(path => ({ in: path, out: path.replace(/\.ts$/, '') })),
    outdir: folder,
    bundle: true,
    splitting: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    plugins: [{ name: 'busbar', setup: fromSources }]
  })
  const hash = createHash('sha1')
  for (const { path, contents } of outputFiles) hash.update(path).update(contents)
  const place = join(folder, hash.digest('hex').slice(0, 16))
  if (!existsSync(place)) {
    const part = `${place}.${process.pid}`
    for (const { path, contents } of outputFiles) {
      const target = path.replace(folder, part)
      mkdirSync(dirname(target), { recursive: true })
      writeFileSync(target, contents)
    }
    try {
      renameSync(part, place)
    } catch {
      // Another process has put the same there.
      rmSync(part, { recursive: true, force: true })
    }
  }
  return `${pathToFileURL(place).href}/`
}

/** As the condition `busbar-source` has it. */
function fromSources(esbuild) {
  esbuild.onResolve({ filter: /^busbar\/(?:sdk|api)/ }, ({ path }) => {
    const name = path.slice('busbar/'.length)
    const file = name.startsWith('api/') ? `plugins/${name.slice('api/'.length)}/api.ts` : `${name}/index.ts`
    return { path: join(root, file) }
  })
  // Inside the bundle: of all packages it alone has many modules.
  esbuild.onResolve({ filter: /^@sinclair\/typebox$/ }, async () => ({ path: await bundledTypebox() }))
}
