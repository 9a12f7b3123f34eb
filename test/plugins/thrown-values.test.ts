import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { Told } from './thrown-values-process.js'

test('what a plugin throws where Node calls it back is that plugin’s, also when it is no error', async t => {
  const child = fork(fileURLToPath(new URL('thrown-values-process.ts', import.meta.url)), {
    signal: AbortSignal.timeout(240_000)
  })
  t.teardown(() => child.kill())
  child.on('error', () => {})
  const exited = once(child, 'exit')
  const [told] = (await Promise.race([once(child, 'message'), exited])) as [
    Readonly<Record<string, Told>> | number | null
  ]
  if (typeof told !== 'object' || told === null) return t.fail(`the process ended: ${String(told)}`)
  for (const [name, { reason, uncaught, exits }] of Object.entries(told)) {
    t.match(reason, /an error was not caught: /, name)
    t.equal(uncaught, undefined, `${name}: nothing belongs to nobody`)
    t.equal(exits, 0, name)
  }
  t.equal((await exited)[0], 0)
})
