/**
 * `npm run test:mutants`: puts small defects into the code, one at a time and in a copy, and asks the nearest tests
 * whether they notice. docs/testing.md says how to read the outcome.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { API } from 'typescript/unstable/sync'
import { readImportGraph } from '../test/structure/import-graph.js'
import { groupsOfAsking } from './mutants/closeness.js'
import { KnownTests } from './mutants/known-tests.js'
import { equivalents, untried } from './mutants/left-out.js'
import { type Mutant, mutantsOf } from './mutants/mutations.js'
import { NearestTests } from './mutants/nearest-tests.js'
import { readOptions } from './mutants/options.js'
import { type Judged, report } from './mutants/report.js'
import { tryMutant } from './mutants/trial.js'
import { Workshop } from './mutants/workshop.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const options = readOptions(process.argv.slice(2), commit())
const { files, imports } = readImportGraph(root)
const paths = files.map(({ path }) => path)
const nearest = new NearestTests(root, paths, imports)

const isSource = (path: string): boolean =>
  !path.includes('/test/') && !path.includes('/migrations/') && !path.endsWith('.d.ts')
const chosen = sample(
  paths.filter(
    path =>
      isSource(path) &&
      options.paths.some(wanted => path === wanted || path.startsWith(`${wanted.replace(/\/$/, '')}/`)) &&
      !untried.some(({ beginning }) => path.startsWith(beginning))
  ),
  options.files,
  path => path
)
const sources = readSources()
const mutants = inTurns(chosen.map(mutantsIn))
const needsEngine = new Set(
  ['lab/engine.ts', 'lab/second-engine.ts'].flatMap(file => [...nearest.distances(file).keys()])
)
/** Tests that boot a platform, or start a database. */
const starting = new Set(
  ['sdk/testing/cluster.ts', 'sdk/testing/test-kernel.ts'].flatMap(file => [
    ...nearest.distances(file).keys()
  ])
)
const mayAsk = (test: string): boolean =>
  (options.engine || !needsEngine.has(test)) && !(options.unit && starting.has(test))
const testsOf = new Map(chosen.map(file => [file, nearest.of(file, options.tests, mayAsk)]))
console.log(
  `${mutants.length} defects in ${chosen.length} files, chosen by --seed ${options.seed}; ${options.engine ? '' : 'no tests that need an engine (--engine)'}`
)

const environment: NodeJS.ProcessEnv = { ...process.env, SAMPLES_SEED: options.seed, CI: '' }
if (!options.engine) environment.DOCKER_HOST = 'unix:///nowhere/docker.sock'
const workshops = Array.from({ length: options.jobs }, () => Workshop.copyOf(root, environment))
const judged: Judged[] = []
process.once('SIGINT', () => {
  close()
  process.exit(130)
})
let status = 1
try {
  await work()
  status = report(judged, options)
} finally {
  close()
}
process.exit(status)

async function work(): Promise<void> {
  const known = new KnownTests(
    root,
    paths.filter(path => !path.endsWith('.test.ts') && !path.startsWith('scripts/')),
    options.engine,
    options.seconds * 1000
  )
  // The template of the databases is made by code without a defect.
  if (!options.unit)
    for (const workshop of workshops)
      await workshop.run({ test: 'test/http/health.test.ts', limitMs: 120_000 })
  const end = performance.now() + options.minutes * 60_000
  await inWorkshops(mutants, async (mutant, workshop) => {
    if (performance.now() > end) return
    const verdict = await tryMutant({
      mutant,
      groups: groupsOf(mutant.file),
      workshop,
      known,
      root,
      limitMs: options.seconds * 1000
    })
    judged.push({ mutant, verdict })
    console.log(
      `${judged.length}/${mutants.length} ${verdict.kind.padEnd(10)} ${mutant.file}:${mutant.line} ${mutant.change}`
    )
  })
}

function groupsOf(file: string): string[][] {
  return groupsOfAsking(testsOf.get(file) ?? [], nearest.closenessTo(file), test => starting.has(test))
}

async function inWorkshops<T>(
  items: readonly T[],
  run: (item: T, workshop: Workshop) => Promise<void>
): Promise<void> {
  const queue = items.values()
  await Promise.all(
    workshops.map(async workshop => {
      for (const item of queue) await run(item, workshop)
    })
  )
}

function mutantsIn(file: string): Mutant[] {
  const all = (sources.get(file) ?? []).filter(
    one =>
      !equivalents.some(
        known => known.file === file && known.text === one.text && known.change === one.change
      )
  )
  return sample(all, options.mutants, one => `${file}\n${one.text}\n${one.change}`)
}

function readSources(): Map<string, Mutant[]> {
  const api = new API({ cwd: root })
  try {
    const project = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()[0]
    return new Map(
      chosen.flatMap(file => {
        const source = project?.program.getSourceFile(join(root, file))
        return source === undefined ? [] : [[file, mutantsOf(file, source, source.text)] as const]
      })
    )
  } finally {
    api.close()
  }
}

/** The same for the same seed, in an order of its own. */
function sample<T>(all: readonly T[], count: number, nameOf: (one: T) => string): T[] {
  return all
    .map(one => ({
      one,
      at: createHash('sha256')
        .update(`${options.seed}\n${nameOf(one)}`)
        .digest('hex')
    }))
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .slice(0, count)
    .map(({ one }) => one)
}

/** One of each file, then the next of each, so that a run that is cut short has seen something of all. */
function inTurns<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(list => list.length))
  return Array.from({ length: longest }, (_, at) => lists.flatMap(list => list.slice(at, at + 1))).flat()
}

function close(): void {
  for (const workshop of workshops.splice(0)) workshop.close()
}

function commit(): string {
  return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
}
