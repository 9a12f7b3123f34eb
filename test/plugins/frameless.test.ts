import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { Told } from './frameless-process.js'

test('what fails where Node calls a plugin back in no frame is that plugin’s, and ends its own connection at most', async t => {
  const child = fork(fileURLToPath(new URL('frameless-process.ts', import.meta.url)), {
    signal: AbortSignal.timeout(180_000)
  })
  t.teardown(() => child.kill())
  child.on('error', () => {})
  const exited = once(child, 'exit')
  const [told] = (await Promise.race([once(child, 'message'), exited])) as [
    | {
        readonly outcomes: Readonly<Record<string, Told>>
        readonly left: number
        readonly isUnsubscribed: boolean
      }
    | number
    | null
  ]
  if (typeof told !== 'object' || told === null) return t.fail(`the process ended: ${String(told)}`)
  const { outcomes, left, isUnsubscribed } = told
  for (const [name, { reason, exits, uncaught }] of Object.entries(outcomes)) {
    // An error that the SDK makes for a caller in no frame is nobody's; a limit that is missed is no fault of the kernel.
    const expected = name === 'the service call limit' ? { reason: undefined } : { uncaught: undefined }
    t.match({ reason, uncaught }, expected, name)
    t.equal(exits, 0, name)
    if (name !== 'the service call limit') t.match(reason, /an error was not caught: /, name)
  }
  for (const path of ['/', '/then', '/data', '/now'])
    t.same(
      outcomes[`http2 ${path}`]?.answer,
      ['fine', 'ended with 2'],
      'its stream ends, and no other of its session'
    )
  for (const path of ['/close', '/write'])
    t.match(outcomes[`http2 ${path}`]?.answer, ['fine'], 'its stream had ended')
  t.same(outcomes['a signal']?.answer, { heard: 2, once: 1 }, 'other listeners hear it')
  for (const name of ['then', 'await', 'throw'])
    t.equal(outcomes[`a subscriber ${name}`]?.answer, 200, 'the connection it was told of goes on')
  t.equal(left, 0)
  t.equal(isUnsubscribed, true)
  t.equal((await exited)[0], 0)
})
