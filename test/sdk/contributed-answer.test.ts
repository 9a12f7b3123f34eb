import { askContribution, askRefusal, Problem } from 'busbar/sdk'
import { test } from 'tap'
import { passGates } from '../../plugins/applications/gates.js'
import { volumesOf } from '../../plugins/deployments/rollout/contributed-volumes.js'
import { load } from '../../plugins/deployments/rollout/steps/load.js'

const what = 'the gate of the plugin "quota"'
const bounds = { ms: 60_000, what }
/** What a plugin in JavaScript may answer where a text or null is expected. */
const answer = (value: unknown) => async () => value as string | null
const throwing = (thrown: unknown) => (): never => {
  throw thrown
}

const unreadable = new Proxy(new Error('x'), {
  get: () => {
    throw new Error('not for you')
  }
})

test('nothing and null refuse nothing, a sentence refuses, and anything else names who answered it', async t => {
  for (const none of [null, undefined]) t.equal(await askRefusal(answer(none), bounds), null)
  t.equal(await askRefusal(answer('the quota is used up'), bounds), 'the quota is used up')
  for (const [value, said] of [
    [{}, 'an object'],
    [[], 'a list'],
    ['', 'an empty text'],
    [' ', 'an empty text'],
    [0, 'a number'],
    [false, 'a boolean'],
    [() => 1, 'a function']
  ] as const)
    await t.rejects(askRefusal(answer(value), bounds), {
      message: `${what} answered ${said}; it takes a sentence that says why, or null`
    })
})

test('what a contribution throws names it, but for a problem, which is meant for the caller, and an abort', async t => {
  await t.rejects(askContribution(throwing(new Error('no quota')), bounds), { message: `${what}: no quota` })
  for (const [thrown, said] of [
    [null, 'it threw null'],
    [undefined, 'it threw undefined'],
    ['a text', 'a text'],
    [Object.create(null), 'it threw an object'],
    [unreadable, 'it threw an object']
  ] as const)
    await t.rejects(askContribution(throwing(thrown), bounds), { message: `${what}: ${said}` })
  const problem = new Problem(409, 'E_QUOTA', 'the quota is used up')
  await t.rejects(askContribution(throwing(problem), bounds), problem)
  const abort = new AbortController()
  const reason = new Error('cancelled')
  await t.rejects(
    askContribution(
      async () => {
        abort.abort(reason)
        throw new Error('it was aborted')
      },
      { ...bounds, signal: abort.signal }
    ),
    reason
  )
  await t.rejects(
    askContribution(async () => await new Promise(() => {}), { ms: 5, what }),
    {
      message: `${what} did not answer within 0.005 s`
    }
  )
})

const one = <T>(value: T) => ({
  get: () => value,
  keys: () => ['quota'],
  entries: () => [{ key: 'quota', plugin: 'quota', value }]
})

test('a deploy and a stop ask their gates in this way', async t => {
  const step = (refuses: () => Promise<string | null>) =>
    load({
      registry: { deployable: async () => ({ source: { type: 'image' } }) },
      variables: { merged: async () => [] },
      gates: one({ refuses }),
      clock: { now: () => new Date(0) }
    } as never).run(
      {
        deployment: { application_id: 'a', project_id: 'p' },
        secrets: { redact: () => {} },
        signal: new AbortController().signal
      } as never,
      {} as never
    )
  t.match(await step(answer(undefined)), { loadedAt: new Date(0) })
  await t.rejects(step(answer('used up')), { message: 'used up' })
  await t.rejects(step(answer({})), { message: /^the deploy gate of the plugin "quota" answered an object;/ })
  await t.rejects(step(throwing(null)), { message: 'the deploy gate of the plugin "quota": it threw null' })

  await passGates(one({ refuses: answer(undefined) }), 'a')
  await t.rejects(passGates(one({ refuses: answer('a backup runs') }), 'a'), {
    status: 409,
    message: /a backup runs/
  })
  await t.rejects(passGates(one({ refuses: answer({}) }), 'a'), {
    message: /^the gate of the plugin "quota" answered/
  })
})

test('the parts of a container are a list of volumes, or nothing', t => {
  const of = (parts: unknown) => volumesOf(parts, 'the container parts of the plugin "files"')
  t.same(of(undefined), [])
  t.same(of(null), [])
  const volumes = [{ volume: 'v', path: '/data', readOnly: true }]
  t.same(of({ volumes }), volumes)
  for (const parts of [{}, 'v', { volumes: null }, { volumes: [null] }, { volumes: [{ volume: 'v' }] }])
    t.throws(() => of(parts), {
      message: 'the container parts of the plugin "files" are not { volumes: [{ volume, path }] }'
    })
  t.end()
})
