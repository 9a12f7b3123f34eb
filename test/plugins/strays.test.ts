import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { Outcome } from './stray-process.js'

test('what any callback of a plugin throws ends the connection it came of, marks the plugin, and ends no process', async t => {
  const child = fork(fileURLToPath(new URL('stray-process.ts', import.meta.url)), {
    signal: AbortSignal.timeout(120_000)
  })
  t.teardown(() => child.kill())
  child.on('error', () => {})
  const exited = once(child, 'exit')
  const [outcomes] = (await Promise.race([once(child, 'message'), exited])) as [
    Readonly<Record<string, Outcome>> | number | null
  ]
  if (typeof outcomes !== 'object' || outcomes === null)
    return t.fail(`the process ended: ${String(outcomes)}`)
  for (const [name, outcome] of Object.entries(outcomes)) {
    t.match(
      outcome,
      { reason: `an error was not caught: thrown by ${name}`, isClosed: true, isHealthy: true },
      name
    )
  }
  t.equal((await exited)[0], 0)
})
