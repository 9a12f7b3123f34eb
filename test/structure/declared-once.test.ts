import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'

const root = join(import.meta.dirname, '../..')

/** What is written in one place, the files that are that place, and what all others use instead. */
const declaredOnce: ReadonlyArray<{
  readonly what: string
  readonly pattern: RegExp
  readonly homes: readonly string[]
  readonly instead: string
}> = [
  {
    what: 'the header with the total of a list',
    pattern: /x-total-count/i,
    // The second one lets browsers read it, and the third reads it.
    homes: ['sdk/list.ts', 'core/http/cors.ts', 'sdk/client/busbar-client.ts'],
    instead: 'route.list'
  },
  {
    what: 'the query of a list, and its reading',
    pattern: /\bpagingQuery\b|\breadPage\b(?=[^;]*from 'busbar\/sdk')/,
    // Two operations of the older system answer otherwise: an object with a count in it.
    homes: [
      'sdk/schema.ts',
      'sdk/list.ts',
      'plugins/audit-logs/routes.ts',
      'plugins/audit-logs/schemas.ts',
      'plugins/notifications/routes.ts',
      'plugins/notifications/schemas.ts'
    ],
    instead: 'route.list'
  },
  {
    what: 'the page that is a whole list',
    pattern: /999_?999_?999/,
    homes: ['sdk/schema.ts'],
    instead: 'wholeList'
  },
  {
    what: 'the pattern of a UUID',
    pattern: /\{8\}\)?\(?-/,
    homes: ['sdk/schema.ts'],
    instead: 'uuid() and isUuid'
  },
  {
    what: 'the rule that an application lies in its project',
    pattern: /applicationId: 'application'/,
    homes: ['plugins/applications/api.ts'],
    instead: "inApplication of 'busbar/api/applications'"
  },
  {
    what: 'a time limit, which AbortSignal.any would lose to the garbage collector',
    pattern: /AbortSignal\s*\.\s*timeout\b/,
    // The client runs where there is no SDK, and hands it to fetch, which keeps it; the other two only name it.
    homes: ['sdk/client/busbar-client.ts', 'sdk/client/types.ts', 'sdk/time-limit.ts'],
    instead: 'withTimeLimit'
  }
]

// What ships. Tests say by themselves what they expect.
const modules = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'], {
  cwd: root,
  encoding: 'utf8'
})
  .split('\n')
  .filter(path => /^(core|embedded-postgres|sdk|plugins|examples)\//.test(path) && !/(^|\/)test\//.test(path))
  .map(path => ({ path, code: readFileSync(join(root, path), 'utf8') }))

test('what all plugins need is written once', async t => {
  for (const { what, pattern, homes, instead } of declaredOnce) {
    const found = modules.filter(({ code }) => pattern.test(code)).map(({ path }) => path)
    t.same(found.sort(), [...homes].sort(), `${what}: ${instead}`)
  }
})
