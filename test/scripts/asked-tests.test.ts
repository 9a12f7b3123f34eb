import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { groupsOfAsking } from '../../scripts/mutants/closeness.js'
import type { KnownTest } from '../../scripts/mutants/known-tests.js'
import type { Mutant } from '../../scripts/mutants/mutations.js'
import { NearestTests } from '../../scripts/mutants/nearest-tests.js'
import { tryMutant, type Verdict } from '../../scripts/mutants/trial.js'
import type { Import } from '../structure/import-graph.js'

const file = 'core/auth/lock.ts'
const named = 'test/auth/lock.test.ts'
const direct = 'test/http/doors.test.ts'
const slowDirect = 'test/bus/doors.test.ts'
const quick = 'test/auth/quick.test.ts'
const slow = 'test/auth/slow.test.ts'
const booting = 'test/auth/booting.test.ts'
const all = [booting, slow, quick, slowDirect, direct, named]
/** The slower, the more directly it is about the file. */
const msOf = new Map([
  [named, 9000],
  [direct, 7000],
  [slowDirect, 8000],
  [quick, 10],
  [slow, 20],
  [booting, 5]
])

const imports = (from: string, to: string): Import => ({ from, to, specifier: to, isTypeOnly: false })

/** Of files in which nothing stands: who starts whom is read from them. */
function nearestOf(t: Test, files: readonly string[], links: readonly Import[]): NearestTests {
  const root = mkdtempSync(join(tmpdir(), 'busbar-asked-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  for (const one of files) {
    mkdirSync(join(root, dirname(one)), { recursive: true })
    writeFileSync(join(root, one), '')
  }
  return new NearestTests(root, files, links)
}

/** Of `mutant` in `file`: who was asked, in that order, and what came of it. */
async function ask(
  t: Test,
  { limitMs = 60_000, notices }: { limitMs?: number; notices?: string } = {}
): Promise<{ readonly asked: string[]; readonly learned: string[]; readonly verdict: Verdict }> {
  const nearest = nearestOf(t, all, [
    imports(direct, file),
    imports(slowDirect, file),
    ...[quick, slow, booting].flatMap(one => [imports(one, 'core/door.ts')]),
    imports('core/door.ts', file)
  ])
  const [asked, learned]: [string[], string[]] = [[], []]
  const cameBy = new Map([[file, new Map([[0, true]])]])
  const verdict = await tryMutant({
    mutant: { file, reach: 0 } as Mutant,
    groups: groupsOfAsking(
      nearest.of(file, 10, () => true),
      nearest.closenessTo(file),
      one => one === booting
    ),
    known: {
      learn: async one => {
        learned.push(one)
        return { test: one, ms: msOf.get(one) ?? 0, cameBy } satisfies KnownTest
      }
    },
    workshop: {
      directory: '',
      with: async (_, use) => await use(),
      run: async ({ test: one }) => {
        asked.push(one)
        return one === notices ? 'failed' : 'passed'
      }
    },
    root: '',
    limitMs
  })
  return { asked, learned, verdict }
}

test('the test named after the file is asked first, then those that import it, then the fastest', async t => {
  const { asked, verdict } = await ask(t)
  t.same(asked, [named, direct, slowDirect, quick, slow, booting])
  t.same(verdict, { kind: 'survived', asked: 6 })
})

test('when a test has noticed, no other is asked, and the next group is not even run without the defect', async t => {
  const { asked, learned, verdict } = await ask(t, { notices: direct })
  t.same(asked, [named, direct])
  t.same(learned.sort(), [named, direct, slowDirect].sort())
  t.same(verdict, { kind: 'caught', by: direct })
})

test('the time for one defect is that of all tests together', async t => {
  t.same(
    (await ask(t, { limitMs: 20_000 })).asked,
    [named, direct, quick, slow, booting],
    'what would take longer than is left is passed over'
  )
  t.same((await ask(t, { limitMs: 9_000 })).asked, [named], 'none when nothing is left')
})

test('a test is named after a file in its own folder of tests, or where imports lead to the file', async t => {
  const tests = [
    'plugins/mail/test/inbox.test.ts',
    'plugins/mail/test/outbox.test.ts',
    'test/bus/outbox.test.ts',
    'plugins/news/test/outbox.test.ts'
  ]
  const nearest = nearestOf(t, tests, [imports('plugins/news/test/outbox.test.ts', 'plugins/mail/api.ts')])
  const asked = (of: string): string[] => nearest.of(of, 1, () => true)
  t.same(
    asked('plugins/mail/outbox.ts'),
    ['plugins/mail/test/outbox.test.ts'],
    'though the platform loads it and nothing imports it'
  )
  t.same(asked('core/bus/outbox.ts'), ['test/bus/outbox.test.ts'])
  t.same(asked('core/log/outbox.ts'), [])
  t.same(asked('plugins/mail/api.ts'), ['plugins/news/test/outbox.test.ts'])
})

test('a file of a plugin, which the platform loads, is judged by the tests of the plugin and those that call every operation', t => {
  const [fields, outbox, inbox] = [
    'test/contract/fields.test.ts',
    'plugins/mail/test/outbox.test.ts',
    'plugins/mail/test/inbox.test.ts'
  ]
  const nearest = nearestOf(
    t,
    ['plugins/news/test/news.test.ts', 'test/http/edge.test.ts', fields, outbox, inbox],
    [imports(inbox, 'plugins/mail/reading.ts'), imports('plugins/mail/reading.ts', 'plugins/mail/parts.ts')]
  )
  const asked = (of: string): string[] => nearest.of(of, 10, () => true)
  t.same(asked('plugins/mail/rules.ts'), [outbox, inbox, fields])
  t.same(asked('plugins/mail/parts.ts'), [inbox, outbox, fields], 'those first that import it, however far')
  t.same(asked('core/mail/rules.ts'), [])
  t.end()
})
