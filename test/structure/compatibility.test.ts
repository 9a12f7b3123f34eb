/** Clients were made from the descriptions in `docs/api/`: whatever breaks them, the changelog names. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { describeBuiltInChannels, describeBuiltIns } from '../../scripts/client/describe.js'
import { breakingChanges } from '../../scripts/compatibility/breaking-changes.js'
import { unnamedChanges } from '../../scripts/compatibility/unnamed-changes.js'

const root = join(import.meta.dirname, '../..')
const released = async (name: string) => JSON.parse(await readFile(join(root, 'docs/api', name), 'utf8'))
const told = (changes: ReadonlyArray<{ of: string; what: string }>): string[] =>
  changes.map(({ of, what }) => `${of} ${what}`)

test('the changelog names all that breaks clients of the last release', async t => {
  const before = { openapi: await released('openapi.json'), asyncapi: await released('asyncapi.json') }
  const now = { openapi: await describeBuiltIns(root), asyncapi: await describeBuiltInChannels(root) }
  const changelog = await readFile(join(root, 'CHANGELOG.md'), 'utf8')
  t.same(
    told(unnamedChanges(breakingChanges(before, now), changelog)),
    [],
    'keep it as it was, or say "- **Breaking**: `GET /api/…` …" under [Unreleased] in CHANGELOG.md'
  )
  t.same(breakingChanges(now, now), [], 'what is the same breaks nobody')
  t.ok(
    breakingChanges(before, { openapi: { paths: {} }, asyncapi: { channels: {} } }).length > 100,
    'what is gone is noticed'
  )
})

test('a change is named where its operation stands in a breaking item of the coming release', t => {
  const change = { of: 'GET /api/notes', what: 'is gone' }
  const changelog = (unreleased: string): string =>
    `# Changelog\n\n## [Unreleased]\n\n### Changed\n\n${unreleased}\n\n## [0.1.0]\n\n- **Breaking**: \`GET /api/old\`.\n`
  t.same(unnamedChanges([change], changelog('- **Breaking**: `GET /api/notes` is `GET /api/all-notes`.')), [])
  t.same(unnamedChanges([change], changelog('- `GET /api/notes` is faster.')), [change])
  t.same(unnamedChanges([change], changelog('- **Breaking**: `GET /api/notes/{noteId}` is gone.')), [change])
  t.same(unnamedChanges([{ ...change, of: 'GET /api/old' }], changelog('')), [
    { ...change, of: 'GET /api/old' }
  ])
  t.end()
})
