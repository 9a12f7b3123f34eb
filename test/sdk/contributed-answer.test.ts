import { askContribution, askNow, askOrLeaveOut, askRefusal, type Log, Problem } from 'busbar/sdk'
import { test } from 'tap'
import { passGates } from '../../plugins/applications/gates.js'
import { checkCollisions, partsOf } from '../../plugins/deployments/rollout/contributed-parts.js'
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

test('the parts of a container are lists of volumes and files, or nothing', t => {
  const of = (parts: unknown) => partsOf(parts, 'the container parts of the plugin "files"')
  t.same(of(undefined), { volumes: [], files: [], hidden: [] })
  t.same(of(null), { volumes: [], files: [], hidden: [] })
  const volumes = [{ volume: 'v', path: '/data', readOnly: true }]
  t.same(of({ volumes }), { volumes, files: [], hidden: [] })
  const files = [{ path: '/app/key', content: Buffer.from('k'), mode: 0o600 }]
  t.same(of({ volumes: [], files, hidden: ['k'] }), { volumes: [], files, hidden: ['k'] })
  const wrong = [
    {},
    'v',
    { volumes: null },
    { volumes: [null] },
    { volumes: [{ volume: 'v' }] },
    { volumes, files: null },
    { volumes, hidden: 'k' },
    { volumes, files: [{ path: '/app/key', content: 'k', mode: 0o600 }] },
    { volumes, files: [{ path: '/app/key', content: Buffer.from('k') }] }
  ]
  for (const parts of wrong)
    t.throws(() => of(parts), {
      message:
        'the container parts of the plugin "files" are not { volumes: [{ volume, path }], files: [{ path, content, mode }], hidden: [text] }'
    })
  t.end()
})

test('parts of several plugins that cannot be mounted in one container are told apart by their plugins', t => {
  const volume = { plugin: 'volumes', volumes: [{ volume: 'v', path: '/data' }], files: [] }
  const file = (path: string) => ({
    plugin: 'files',
    volumes: [],
    files: [{ path, content: Buffer.from(''), mode: 0o644 }]
  })
  t.doesNotThrow(() => checkCollisions([volume, file('/data/settings'), file('/database/x')]))
  t.throws(() => checkCollisions([volume, file('/data')]), {
    message:
      'the volume at /data (volumes) and the file at /data (files) cannot be mounted in one container: remove one of them'
  })
  t.throws(() => checkCollisions([file('/a/b'), file('/a/b/c')]), /the file at \/a\/b \(files\)/)
  t.end()
})

const logged = () => {
  const lines: Array<{ readonly members: object; readonly msg: string }> = []
  const log = {
    error: (members: object, msg: string) => {
      lines.push({ members, msg })
    }
  } as unknown as Log
  return { lines, log }
}
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable([], {})
  revoke()
  return proxy
}
const takesText = {
  what: 'the prices',
  takes: 'a text',
  take: (value: unknown) => (typeof value === 'string' ? value : undefined)
}

test('a contribution that answers at once is left out when it fails, and the log names its plugin once', async t => {
  for (const [value, reason] of [
    [async () => 'soon', 'it answered a promise; it takes a text'],
    [async () => await Promise.reject(new Error('late')), 'it answered a promise; it takes a text'],
    [() => ({}), 'it answered an object; it takes a text'],
    [() => [], 'it answered a list; it takes a text'],
    [() => 5, 'it answered a number; it takes a text'],
    [() => Symbol('s'), 'it answered a symbol; it takes a text'],
    [() => undefined, 'it answered undefined; it takes a text'],
    [revoked, 'it answered an object; it takes a text'],
    [throwing(null), 'it threw null'],
    [throwing(new Error('no')), 'no'],
    [throwing(unreadable), 'it threw an object'],
    [null, /is not a function/]
  ] as const) {
    const { lines, log } = logged()
    const entry = { plugin: 'quota', value: value as () => unknown }
    const ask = () => askNow(entry, own => own(), { ...takesText, log })
    t.equal(ask(), undefined)
    t.equal(ask(), undefined)
    t.match(lines, [
      {
        members: { contributor: 'quota', reason },
        msg: 'the prices of the plugin "quota" could not be taken'
      }
    ])
    t.equal(lines.length, 1, 'said once')
    askNow({ ...entry }, own => own(), { ...takesText, log })
    t.equal(lines.length, 2, 'another run is another contribution')
  }
  const { lines, log } = logged()
  t.equal(
    askNow({ plugin: 'p', value: () => 'a' }, own => own(), { ...takesText, log }),
    'a'
  )
  t.same(lines, [])
})

test('one that answers later is left out in the same way, and a problem is handed to whoever asks for that', async t => {
  const { lines, log } = logged()
  const expected = { ...takesText, log, ms: 60_000 }
  const ask = async (value: () => unknown, ms = 60_000) =>
    await askOrLeaveOut({ plugin: 'quota', value }, own => own(), { ...expected, ms })
  t.equal(await ask(answer('a')), 'a')
  t.equal(await ask(answer(7)), undefined)
  t.equal(await ask(throwing(null)), undefined)
  t.equal(await ask(async () => await new Promise(() => {}), 5), undefined)
  t.same(
    lines.map(({ members }) => members),
    ['it answered a number; it takes a text', 'it threw null', 'it did not answer within 0.005 s'].map(
      reason => ({ contributor: 'quota', reason })
    )
  )
  const problem = new Problem(503, 'E_BUSY', 'busy')
  const problems: Problem[] = []
  const entry = { plugin: 'quota', value: throwing(problem) }
  const onProblem = (one: Problem): unknown => problems.push(one)
  t.equal(await askOrLeaveOut(entry, own => own(), { ...expected, onProblem }), undefined)
  t.same(problems, [problem])
  t.equal(lines.length, 3)
  t.equal(await ask(throwing(problem)), undefined)
  t.match(lines.at(-1), { members: { reason: 'busy' } })
})
