import { spawnSync } from 'node:child_process'
import { test } from 'tap'
import { SharedCall } from '../shared-call.js'

test('a shared call that takes too long says what was waited for, and is told to end', async t => {
  const reasons: unknown[] = []
  const call = new SharedCall(
    async signal =>
      await new Promise<never>(() => {
        signal.addEventListener('abort', () => reasons.push(signal.reason))
      }),
    50,
    'the list of images'
  )
  // Its timer alone keeps no process.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  const message = 'the list of images did not come within 0.05 s'
  await t.rejects(call.answer(), { message })
  t.match(reasons, [{ message }])
})

test('the limit of a shared call does not keep the process', t => {
  const script = `
    const { SharedCall } = await import(${JSON.stringify(new URL('../shared-call.ts', import.meta.url).href)})
    void new SharedCall(() => new Promise(() => {}), 600_000, 'what never comes').answer()`
  const run = spawnSync(
    process.execPath,
    ['--import=tsx', '--conditions=busbar-source', '--input-type=module', '-e', script],
    { encoding: 'utf8', timeout: 60_000 }
  )
  t.equal(run.status, 0, run.stderr)
  t.end()
})
