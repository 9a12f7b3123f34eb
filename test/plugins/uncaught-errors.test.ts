import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { Outcome } from './uncaught-errors-process.js'

test('what any callback of a plugin throws ends the connection it came of, marks the plugin, and ends no process', async t => {
  const child = fork(fileURLToPath(new URL('uncaught-errors-process.ts', import.meta.url)), {
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

test('what a listener of a connection throws has ended it before anybody is told', async t => {
  const child = fork(fileURLToPath(new URL('contained-process.ts', import.meta.url)), {
    signal: AbortSignal.timeout(60_000)
  })
  t.teardown(() => child.kill())
  child.on('error', () => {})
  const [told] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown]
  t.same(told, { message: 'thrown by a listener', plugin: 'probe', isEnded: true })
})

test('an error that Node hands over without an owner, or in the frame of another, harms nobody else', async t => {
  const child = fork(fileURLToPath(new URL('ownerless-process.ts', import.meta.url)), {
    signal: AbortSignal.timeout(120_000)
  })
  t.teardown(() => child.kill())
  child.on('error', () => {})
  const exited = once(child, 'exit')
  const [outcomes] = (await Promise.race([once(child, 'message'), exited])) as [Readonly<Record<string, any>>]
  if (typeof outcomes !== 'object' || outcomes === null)
    return t.fail(`the process ended: ${String(outcomes)}`)
  t.same(outcomes.before, { status: 200, healthy: true })
  t.equal(outcomes.exitsWithoutThirdParties, 1, 'without third-party code it is a fault of the kernel')
  for (const name of [
    'a reset stream of http2',
    'a string thrown by http2',
    'a worker without memory',
    'a string thrown for a worker',
    'listeners that a plugin removes',
    'a stack that can be read once',
    'a subscriber of requests that throws',
    'withBody',
    'a stack of call sites',
    'a stack that throws',
    'a domain with a listener that throws'
  ])
    t.equal(outcomes[name], true, name)
  t.equal(outcomes.exits, 0, 'with it, the process does not end')
  t.match(outcomes.after, {
    status: 200,
    healthy: true,
    // That of the kernel before there was any third-party code.
    uncaught: 'degraded: 1 error that belongs to no plugin since the start; see the log'
  })
  t.same(outcomes.requestsOfOthers, [200], 'no connection of others is cut')
  t.match(outcomes.watching, { state: 'degraded', reason: /thrown by a subscriber/ })
  const { thrown, lines, counted } = outcomes.noisy
  t.ok(thrown > 50, `${thrown} errors`)
  t.ok(lines <= 12, `${lines} lines for ${thrown} errors`)
  t.equal(counted, thrown, 'every one is counted')
  t.equal((await exited)[0], 0)
})
