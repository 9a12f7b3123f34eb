/**
 * Transpiles what is stale from TypeScript to dist/. Types are not checked here: `npm run check` does.
 *
 * There is no manifest: an output carries the modification time of its source, so an output is fresh
 * exactly when the two times agree. Outputs are written beside their place and renamed, so two builds
 * at once write the same files twice and no reader sees half of one.
 */
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync
} from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const out = join(root, 'dist')
const stampFile = join(out, '.stamp')

/** Folders whose files go to dist/ under the same path. */
export const runFolders = ['core', 'embedded-postgres', 'sdk', 'plugins']
const sourceFolders = [...runFolders, 'scripts', 'lab', 'bench']

/** File names of these kinds are code; everything else (plugin.json, assets) is copied. */
const isCode = name => name.endsWith('.ts') && !name.endsWith('.d.ts')
const isLeftOut = name =>
  name.endsWith('.test.ts') || name.endsWith('.d.ts') || name.endsWith('.md') || name.endsWith('.mjs')
/** Built with all they import in one file, as one is loaded faster than hundreds, and takes less memory. */
const bundled = new Set(['sdk/typebox.ts', 'core/database/knex.ts', 'core/jobs/graphile-worker.ts'])
/** Not into these files: what others load as well, and drivers and tools that are not installed. */
const besides = [
  'pg',
  'pg-native',
  'pg-query-stream',
  'better-sqlite3',
  'mariadb',
  'mysql',
  'mysql2',
  'oracledb',
  'sqlite3',
  'tedious',
  'typescript'
]
const bundleOptions = {
  bundle: true,
  // the text of what runs stays in memory
  minifyWhitespace: true,
  external: besides,
  // packages in CommonJS ask for what Node.js brings by `require`
  banner: {
    js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"
  }
}
/** Tests of a plugin, by their path: they run from source. */
const isTestFolder = path => /^plugins\/[^/]+\/test$/.test(path)

const esbuildOptions = {
  bundle: false,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: true,
  logLevel: 'silent'
}

/** Brings dist/ up to date; how many files were written and removed. */
export async function build() {
  const startedAt = Date.now()
  const sources = listSources()
  const stamp = currentStamp()
  const isNewToolchain = !existsSync(stampFile) || readFileSync(stampFile, 'utf8') !== stamp
  const { code, assets } = staleOf(sources, isNewToolchain)
  if (code.length > 0) await transpile(code)
  for (const source of assets) copyAsset(source)
  const removed = removeOrphans(sources, startedAt)
  if (isNewToolchain) replaceFile(stampFile, stamp)
  return { written: code.length + assets.length, removed }
}

function listSources() {
  const found = []
  for (const folder of sourceFolders) walk(folder)
  return found

  function walk(folder) {
    if (isTestFolder(folder)) return
    for (const entry of readEntries(join(root, folder))) {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) {
        if (entry.name !== 'node_modules') walk(path)
      } else if (entry.isFile() && !entry.name.startsWith('.') && !isLeftOut(entry.name)) {
        found.push({ path, isCode: isCode(entry.name), mtime: statSync(join(root, path)).mtime })
      }
    }
  }
}

function readEntries(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}

const outputOf = source =>
  source.isCode ? `${source.path.slice(0, -extname(source.path).length)}.js` : source.path

function staleOf(sources, isNewToolchain) {
  const code = []
  const assets = []
  for (const source of sources) {
    if (!isNewToolchain && isFresh(join(out, outputOf(source)), source.mtime)) continue
    if (source.isCode) code.push(source)
    else assets.push(source)
  }
  return { code, assets }
}

function isFresh(output, mtime) {
  const stats = statSync(output, { throwIfNoEntry: false })
  // utimes keeps microseconds where the file system keeps nanoseconds
  return stats !== undefined && Math.abs(stats.mtimeMs - mtime.getTime()) < 1
}

async function transpile(sources) {
  // loaded here, because a build with nothing to do must not wait for it
  const esbuild = await import('esbuild')
  const run = async (part, options) =>
    await esbuild.build({
      ...esbuildOptions,
      ...options,
      absWorkingDir: root,
      entryPoints: part.map(source => ({
        in: source.path,
        out: source.path.slice(0, -extname(source.path).length)
      })),
      outdir: out,
      write: false
    })
  try {
    const results = await Promise.all([
      run(sources.filter(({ path }) => !bundled.has(path))),
      run(
        sources.filter(({ path }) => bundled.has(path)),
        bundleOptions
      )
    ])
    const mtimes = new Map(sources.map(source => [join(out, outputOf(source)), source.mtime]))
    // the map first: an output that is there is complete
    const files = results
      .flatMap(({ outputFiles }) => outputFiles)
      .sort((a, b) => Number(b.path.endsWith('.map')) - Number(a.path.endsWith('.map')))
    for (const file of files)
      replaceFile(file.path, file.contents, mtimes.get(file.path.replace(/\.map$/, '')))
  } finally {
    await esbuild.stop()
  }
}

function copyAsset(source) {
  const target = join(out, source.path)
  const part = partOf(target)
  copyFileSync(join(root, source.path), part)
  utimesSync(part, source.mtime, source.mtime)
  renameSync(part, target)
}

function replaceFile(target, content, mtime) {
  const part = partOf(target)
  writeFileSync(part, content)
  if (mtime !== undefined) utimesSync(part, mtime, mtime)
  renameSync(part, target)
}

function partOf(target) {
  mkdirSync(dirname(target), { recursive: true })
  return join(dirname(target), `.part-${process.pid}-${target.slice(dirname(target).length + 1)}`)
}

/**
 * Removes what no source stands for. What another build has written since this one looked at the
 * sources stays, and so do the half-written files of a build that lives.
 */
function removeOrphans(sources, startedAt) {
  const wanted = new Set(['.stamp'])
  for (const source of sources) {
    const output = outputOf(source)
    wanted.add(output)
    if (source.isCode) wanted.add(`${output}.map`)
  }
  let removed = 0
  sweep(out)
  return removed

  function sweep(folder) {
    const entries = readEntries(folder)
    let kept = 0
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) {
        if (sweep(path) > 0) kept++
      } else if (
        wanted.has(relative(out, path)) ||
        isPartOfLivingBuild(entry.name) ||
        isNewerThan(path, startedAt)
      ) {
        kept++
      } else {
        rmSync(path, { force: true })
        removed++
      }
    }
    if (kept === 0 && folder !== out) removeFolder(folder)
    return kept
  }
}

function removeFolder(folder) {
  try {
    rmdirSync(folder)
  } catch (error) {
    // another build is putting something into it, or has removed it
    if (error.code !== 'ENOTEMPTY' && error.code !== 'ENOENT') throw error
  }
}

function isNewerThan(path, time) {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats !== undefined && stats.ctimeMs >= time
}

function isPartOfLivingBuild(name) {
  const pid = /^\.part-(\d+)-/.exec(name)?.[1]
  if (pid === undefined) return false
  try {
    process.kill(Number(pid), 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Changes when this script, esbuild or what is bundled does: then everything is stale. */
function currentStamp() {
  const versionOf = name =>
    JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version
  return (
    createHash('sha256')
      .update(readFileSync(fileURLToPath(import.meta.url)))
      .update(versionOf('esbuild'))
      // of what is built into one file, with all that it brings along
      .update(readFileSync(join(root, 'node_modules/.package-lock.json')))
      .digest('hex')
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const { written, removed } = await build()
    if (written > 0 || removed > 0) console.log(`built ${written} files, removed ${removed}`)
  } catch (error) {
    console.error(error instanceof Error && 'errors' in error ? error.message : error)
    process.exitCode = 1
  }
}
