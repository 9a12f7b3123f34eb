/**
 * Builds dist/ from TypeScript when something in it is stale: the files that are found by their path, and what they share
 * (`build/sources.mjs`). A platform of a few files starts in two thirds of the time that one of a thousand takes, and in less memory.
 * Types are not checked here: `npm run check` does.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle, isShared } from './build/bundle.mjs'
import { removeOthers, replaceFile } from './build/output.mjs'
import { listSources } from './build/sources.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const out = join(root, 'dist')
/** What dist/ was made of, and which files that made. Written last. */
const recordFile = join(out, '.built')

/** Brings dist/ up to date; how many files were written and removed, without maps. */
export async function build() {
  const startedAt = Date.now()
  const sources = listSources(root)
  const made = fingerprint(sources)
  const last = readRecord()
  if (last?.made === made && last.files.every(file => existsSync(join(out, file))))
    return { written: 0, removed: 0 }

  const code = sources.filter(source => source.isCode)
  const files = [
    ...(code.length === 0 ? [] : await bundle({ root, out, sources: code })),
    ...sources
      .filter(source => !source.isCode)
      .map(({ path }) => ({ path, text: readFileSync(join(root, path)) }))
  ]
  let written = 0
  for (const { path, text } of files)
    if (replaceFile(join(out, path), text) && !path.endsWith('.map')) written++
  const paths = files.map(({ path }) => path)
  // a platform that runs still loads of the last build what it has not needed so far
  const before = last?.files.filter(isShared) ?? []
  const removed = removeOthers(out, new Set(['.built', ...paths, ...before]), startedAt)
  replaceFile(recordFile, JSON.stringify({ made, files: paths }))
  return { written, removed }
}

function readRecord() {
  try {
    return JSON.parse(readFileSync(recordFile, 'utf8'))
  } catch {
    // there is none, or it is of an older build
    return undefined
  }
}

/** Changes when a source does, these scripts do, or what is built in does. */
function fingerprint(sources) {
  const hash = createHash('sha256')
  for (const { path, mtimeMs } of sources) hash.update(`${path} ${mtimeMs}\n`)
  for (const script of ['build.mjs', 'build/bundle.mjs', 'build/output.mjs', 'build/sources.mjs'])
    hash.update(readFileSync(join(root, 'scripts', script)))
  // esbuild, and of what is built into one file all that it brings along
  return hash.update(readFileSync(join(root, 'node_modules/.package-lock.json'))).digest('hex')
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
