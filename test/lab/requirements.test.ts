import { type Test, test } from 'tap'
import { requireRoot, skipWithout } from '../../lab/requirements.js'

/** A test that remembers how it was skipped. */
function skippable() {
  const plans: Array<[number, string | undefined]> = []
  return { plans, plan: (count: number, comment?: string) => void plans.push([count, comment]) }
}

/** As where this process is another account, with or without CI. */
function elsewhere(t: Test, { uid, ci }: { readonly uid: number; readonly ci: string }): void {
  const before = process.env.CI
  process.env.CI = ci
  t.intercept(process, 'getuid', { value: () => uid })
  t.teardown(() => {
    if (before === undefined) delete process.env.CI
    else process.env.CI = before
  })
}

test('root runs what only root may', async t => {
  elsewhere(t, { uid: 0, ci: 'true' })
  const one = skippable()
  t.equal(requireRoot(one, 'mounts a small disk'), true)
  t.same(one.plans, [])
})

test('without root a test is skipped, and stderr says why and what helps, once', async t => {
  elsewhere(t, { uid: 1000, ci: '' })
  const said = t.capture(process.stderr, 'write', () => true)
  for (const one of [skippable(), skippable()]) {
    t.equal(requireRoot(one, 'mounts a small disk'), false)
    t.match(one.plans, [[0, /^only root mounts a small disk: run the tests as root/]])
  }
  t.match(
    said().map(({ args: [text] }) => text),
    [/!!! TESTS THAT NEED ROOT SKIPPED .*: only root mounts a small disk: run the tests as root/]
  )
})

test('in CI nothing is skipped: what the machine lacks is a failure that names it', async t => {
  elsewhere(t, { uid: 1000, ci: 'true' })
  const one = skippable()
  t.throws(() => requireRoot(one, 'mounts a small disk'), {
    message: /^CI must have root: only root mounts a small disk: run the tests as root/
  })
  t.throws(() => skipWithout(one, { what: 'a browser', reason: 'none is installed' }), {
    message: 'CI must have a browser: none is installed'
  })
  t.same(one.plans, [])
})
