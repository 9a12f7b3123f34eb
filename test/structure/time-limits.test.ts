import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'

const root = join(import.meta.dirname, '../..')

/** Where nothing but one listener of Node's own ever sees the signal, which keeps it. */
const exceptions: ReadonlyArray<readonly [file: string, reason: string]> = [
  ['sdk/client/busbar-client.ts', 'fetch listens to it; the client runs where there is no SDK']
]

/** The code without its comments, as far as this repository writes them. */
const uncommented = (text: string): string => text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
const makesTimeLimit = (text: string): boolean => /AbortSignal\s*\.\s*timeout\b/.test(uncommented(text))

const modules = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'], {
  cwd: root,
  encoding: 'utf8'
})
  .split('\n')
  .filter(path => /^(core|embedded-postgres|sdk|plugins|examples)\//.test(path) && !/(^|\/)test\//.test(path))

test('time limits are withTimeLimit: AbortSignal.any loses an AbortSignal.timeout to the garbage collector', async t => {
  t.ok(modules.includes('sdk/time-limit.ts'), 'the modules were found')
  const found = modules.filter(path => makesTimeLimit(readFileSync(join(root, path), 'utf8')))
  t.same(
    found.filter(path => !exceptions.some(([file]) => file === path)),
    []
  )
  t.same(
    exceptions.filter(([file]) => !found.includes(file)),
    [],
    'no exception is left over'
  )
})

test('a time limit is found in code, not in comments', async t => {
  t.ok(makesTimeLimit('const limit = AbortSignal.any([signal, AbortSignal.timeout(5000)])'))
  t.ok(makesTimeLimit('  signal: AbortSignal\n    .timeout(ms),'))
  t.notOk(
    makesTimeLimit(
      '/** Ends it: `AbortSignal.timeout(5_000)`. */\n * AbortSignal.timeout\n  // AbortSignal.timeout'
    )
  )
})
