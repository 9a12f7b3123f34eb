import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Import } from '../../test/structure/import-graph.js'
import { type Closeness, closeness, isNamedAfter } from './closeness.js'

/**
 * Tests of what a file is for, whatever they import: through the platform as a whole each of them comes by. The first
 * beginning that fits counts; besides these, a plugin and a folder of core have a folder of tests each.
 */
const areas: readonly (readonly [beginning: string, tests: readonly string[]])[] = [
  [
    'core/access/',
    ['test/access/', 'test/bus/channels.test.ts', 'test/http/requests.test.ts', 'plugins/projects/test/']
  ],
  [
    'core/audit/',
    ['test/kernel/audit.test.ts', 'plugins/audit-logs/test/', 'test/http/public-routes.test.ts']
  ],
  [
    'core/bus/',
    [
      'test/access/losing-access.test.ts',
      'test/access/losing-credentials.test.ts',
      'test/plugins/third-party.test.ts'
    ]
  ],
  ['core/cache/', ['test/auth/', 'test/access/']],
  ['core/changes/', ['test/access/', 'test/bus/recheck.test.ts']],
  ['core/clock/', ['test/clock/', 'test/sdk/', 'test/schedules/']],
  ['core/config/', ['test/plugins/settings.test.ts', 'test/plugins/variables.test.ts']],
  ['core/database/', ['test/database/', 'test/plugins/purge.test.ts', 'test/plugins/third-party.test.ts']],
  [
    'core/declarations/',
    [
      'test/http/openapi.test.ts',
      'test/resources/',
      'test/schedules/',
      'test/sdk/declared.test.ts',
      'test/plugins/'
    ]
  ],
  ['core/events/', ['test/jobs/events.test.ts', 'test/jobs/job-runner.test.ts']],
  ['core/frames/', ['test/plugins/']],
  ['core/http/', ['test/http/']],
  ['core/limits/', ['test/http/limits.test.ts', 'test/http/public-routes.test.ts']],
  ['core/plugins/', ['test/plugins/', 'test/resources/']],
  ['core/schemas/', ['test/sdk/declared.test.ts', 'test/http/']],
  ['core/services/', ['test/plugins/']],
  ['core/threads/', ['test/plugins/', 'test/event-loop/']],
  ['core/kernel.ts', ['test/kernel/']],
  ['core/kernel-plugin.ts', ['test/kernel/']],
  ['core/kernel-schema.ts', ['test/kernel/']],
  ['core/shutdown.ts', ['test/kernel/']],
  // Most call every operation of every plugin.
  [
    'plugins/',
    [
      'test/contract/',
      'test/kernel/access-matrix.test.ts',
      'test/kernel/audit.test.ts',
      'test/plugins/third-party.test.ts'
    ]
  ]
]

/** Files that are started and not imported: a worker thread, a program of a test. */
const startedFile = /'(\.{1,2}\/[\w./-]*-(?:worker|child|process))(?:\.[jt]s)?'|'([\w-]+-worker)'/g

/** More than any distance by imports: of what comes by only through the platform. */
const furthest = 50

/** Which tests say most about a file, by who imports whom. */
export class NearestTests {
  readonly #importers = new Map<string, Set<string>>()
  readonly #tests: readonly string[]

  constructor(root: string, files: readonly string[], imports: readonly Import[]) {
    const known = new Set(files)
    this.#tests = files.filter(file => file.endsWith('.test.ts'))
    for (const { from, to, isTypeOnly } of imports) if (to !== null && !isTypeOnly) this.#note(from, to)
    for (const from of files) {
      for (const [, path, name] of readFileSync(join(root, from), 'utf8').matchAll(startedFile)) {
        const to = `${join(dirname(from), path ?? name ?? '')}.ts`
        if (known.has(to)) this.#note(from, to)
      }
    }
  }

  #note(from: string, to: string): void {
    const importers = this.#importers.get(to) ?? new Set()
    this.#importers.set(to, importers.add(from))
  }

  /** How many imports away each file is that comes to `file`. */
  distances(file: string): ReadonlyMap<string, number> {
    const far = new Map([[file, 0]])
    for (const [at, distance] of far)
      for (const from of this.#importers.get(at) ?? []) if (!far.has(from)) far.set(from, distance + 1)
    return far
  }

  /**
   * The nearest first: see `closenessTo`, then those of its own folder of tests, those of its area, and any, `enough` of
   * those that may be asked. What belongs to a plugin is imported by none of the tests that come by: the platform loads it.
   */
  of(file: string, enough: number, mayAsk: (test: string) => boolean): string[] {
    const distances = this.distances(file)
    const closenessOf = this.closenessTo(file)
    const own = ownTestsOf(file)
    const area = areaOf(file)
    const isOwn = (test: string): boolean => test.startsWith(own)
    const isOfArea = (test: string): boolean => area.some(beginning => test.startsWith(beginning))
    const comesBy = (test: string): boolean =>
      distances.has(test) ||
      closenessOf(test) === closeness.named ||
      (file.startsWith('plugins/') && (isOwn(test) || isOfArea(test)))
    const rank = (test: string): number =>
      closenessOf(test) !== closeness.other
        ? closenessOf(test)
        : (distances.get(test) ?? furthest) + (isOwn(test) ? 0 : isOfArea(test) ? 100 : 200)
    const ranked = this.#tests
      .filter(test => comesBy(test) && !test.startsWith('test/structure/') && mayAsk(test))
      .map(test => ({ test, rank: rank(test) }))
      .sort((a, b) => a.rank - b.rank)
    return ranked.slice(0, enough).map(({ test }) => test)
  }

  /** A test of the same name counts where it is in the file's own folder of tests, or comes to the file by imports. */
  closenessTo(file: string): (test: string) => Closeness {
    const distances = this.distances(file)
    const own = ownTestsOf(file)
    return test =>
      isNamedAfter(test, file) && (distances.has(test) || test.startsWith(own))
        ? closeness.named
        : distances.get(test) === 1
          ? closeness.imports
          : closeness.other
  }
}

/** A plugin that the platform loads is imported by none of its tests: those of its folder come by all the same. */
function ownTestsOf(file: string): string {
  const [part, folder] = file.split('/')
  return part === 'core' ? `test/${folder}/` : `${part}/${folder}/test/`
}

const areaOf = (file: string): readonly string[] =>
  areas.find(([beginning]) => file.startsWith(beginning))?.[1] ?? []
