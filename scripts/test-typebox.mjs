/**
 * TypeBox in one file. It is two hundred modules, and each costs the tests two round trips to the thread of their
 * loader's hooks: half a second of processor time a process.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const versionOf = name =>
  JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version

export const typebox = '@sinclair/typebox'

/** The path of the file, which is made once for a version. */
export async function bundledTypebox() {
  const place = join(root, '.lab', `typebox-${versionOf(typebox)}-${versionOf('esbuild')}.mjs`)
  if (existsSync(place)) return place
  const { build } = await import('esbuild')
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [typebox],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20'
  })
  mkdirSync(dirname(place), { recursive: true })
  // Beside its place first: others make the same.
  const part = `${place}.${process.pid}`
  writeFileSync(part, outputFiles[0].contents)
  renameSync(part, place)
  return place
}
