import { readdirSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'

/** Folders with what the platform consists of. */
export const runFolders = ['core', 'embedded-postgres', 'sdk', 'plugins']
const sourceFolders = [...runFolders, 'scripts', 'lab', 'bench']

/** Tests of a plugin, by their path: they run from source. */
const isTestFolder = path => /^plugins\/[^/]+\/test$/.test(path)
const isLeftOut = name =>
  name.endsWith('.test.ts') || name.endsWith('.d.ts') || name.endsWith('.md') || name.endsWith('.mjs')

/** Everything that dist/ is made of: `path` from the root, and when it was written. Code is TypeScript; everything else is copied. */
export function listSources(root) {
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
        found.push({ path, isCode: path.endsWith('.ts'), mtimeMs: statSync(join(root, path)).mtimeMs })
      }
    }
  }
}

export function readEntries(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}

/**
 * What is found by its path when the platform runs, and so has a file under the same path in dist/: what package.json exports,
 * what the kernel loads of a plugin, threads, and all tools. Everything else is in these files, or in what several of them share.
 */
export const isEntry = path =>
  path === 'core/main.ts' ||
  path.endsWith('-worker.ts') ||
  /^sdk\/(?:[^/]+\/)?index\.ts$/.test(path) ||
  /^plugins\/[^/]+\/(?:index|api)\.ts$/.test(path) ||
  /^(?:scripts|lab|bench)\//.test(path)

export const withoutEnding = path => path.slice(0, -extname(path).length)
