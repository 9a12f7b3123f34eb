import { test } from 'tap'
import { dependentsOf, type GraphNode, resolveGraph } from '../../core/plugins/graph.js'
import { offersOf } from '../../core/plugins/offers.js'

const node = (
  id: string,
  requires: Record<string, string> = {},
  optional: Record<string, string> = {},
  version = '1.0.0'
): GraphNode => ({ id, version, sdk: '^0.1.0', requires, optional, implements: {} })

const engines = { id: 'engines', version: '1.0.0', name: 'Engines', description: 'A test.' }
const engine = (id: string, range = '^1.0.0'): GraphNode => ({ ...node(id), implements: { engines: range } })

/** Of the plugins that stand first, the contract `engines` is provided by the first that implements it. */
const resolved = (...nodes: readonly GraphNode[]) => resolveGraph(nodes, offersOf(nodes, [engines]), '0.1.0')

test('plugins are ordered after everything they require or optionally use', async t => {
  const { order, problems } = resolved(
    node('deployments', { applications: '^1.0.0' }, { direct: '^1.0.0' }),
    node('applications', { projects: '^1.0.0' }),
    node('direct', { applications: '^1.0.0' }),
    node('projects')
  )
  t.equal(problems.size, 0)
  t.same(order, ['projects', 'applications', 'direct', 'deployments'])
})

test('a missing, an out-of-range and a circular dependency are each named with the plugin at fault', async t => {
  const { order, problems } = resolved(
    node('a', { b: '^1.0.0' }),
    node('b', { a: '^1.0.0' }),
    node('c', { nowhere: '^1.0.0', old: '^2.0.0' }),
    node('old'),
    node('fine')
  )
  t.match(problems.get('a'), /cycle: a → b → a/)
  t.match(problems.get('b'), /cycle: a → b → a/)
  t.match(
    problems.get('c'),
    /requires "nowhere" \^1\.0\.0, which is not installed; it requires "old" \^2\.0\.0, but 1\.0\.0 is installed/
  )
  t.same(order, ['fine', 'old'])
})

test('a plugin written for another SDK is refused with both versions', async t => {
  const { problems } = resolved({ ...node('x'), sdk: '^9.0.0' })
  t.match(problems.get('x'), /written for SDK \^9\.0\.0, this is 0\.1\.0/)
})

test('an optional dependency that is not installed is no problem', async t => {
  t.equal(resolved(node('x', {}, { nowhere: '*' })).problems.size, 0)
})

test('the dependents of a plugin include those that need it through others', async t => {
  const nodes = [
    node('projects'),
    node('applications', { projects: '*' }),
    node('deployments', { applications: '*' }),
    node('tokens')
  ]
  t.same(dependentsOf('projects', nodes, offersOf(nodes, [])), ['applications', 'deployments'])
})

test('a plugin that requires a contract comes after the one that provides it, and is its dependent', async t => {
  const nodes = [engine('z-engine'), node('deploys', { engines: '^1.0.0' }), node('web', { deploys: '*' })]
  const { order, problems } = resolved(...nodes)
  t.equal(problems.size, 0)
  t.same(order, ['z-engine', 'deploys', 'web'])
  t.same(dependentsOf('z-engine', nodes, offersOf(nodes, [engines])), ['deploys', 'web'])
})

test('of two plugins that implement one contract the first provides it, and the other is told of both', async t => {
  const { order, problems } = resolved(
    engine('second'),
    engine('first'),
    node('deploys', { engines: '^1.0.0' })
  )
  t.same(order, ['second', 'deploys'])
  t.equal(
    problems.get('first'),
    '"second" implements "engines" too, and one plugin may at a time: turn one of them off'
  )
})

test('what is wrong with a requirement or an implementation of a contract is named', async t => {
  t.match(
    resolved(node('a', { engines: '^1.0.0' })).problems.get('a'),
    'requires "engines" ^1.0.0, which no installed plugin implements'
  )
  t.match(
    resolved(engine('e'), node('a', { engines: '^2.0.0' })).problems.get('a'),
    'requires "engines" ^2.0.0, but 1.0.0 is installed'
  )
  const old = resolved(engine('e', '^0.9.0'), node('a', { engines: '^1.0.0' })).problems
  t.match(old.get('e'), 'implements "engines" ^0.9.0, but 1.0.0 is installed')
  t.match(old.get('a'), 'which no installed plugin implements')
  const unknown = resolved({ ...node('e'), implements: { ships: '*' } }).problems
  t.match(unknown.get('e'), 'implements "ships" *, and there is no such contract')
  t.match(
    resolved({ ...engine('e'), requires: { engines: '*' } }).problems.get('e'),
    'the dependencies form a cycle: e → e'
  )
})

test('what implements a plugin, or uses one of another version, is told so', async t => {
  const { problems, order } = resolved(
    node('tokens'),
    { ...node('e'), implements: { tokens: '^1.0.0' } },
    node('old', {}, { tokens: '^2.0.0' }),
    node('fine', {}, { tokens: '^1.0.0' })
  )
  t.equal(problems.get('e'), 'it implements "tokens" ^1.0.0, and there is no such contract')
  t.equal(problems.get('old'), 'it uses "tokens" ^2.0.0, but 1.0.0 is installed')
  t.same(order, ['tokens', 'fine'])
  t.equal(
    resolved(engine('e', '^0.9.0')).problems.get('e'),
    'it implements "engines" ^0.9.0, but 1.0.0 is installed'
  )
})

test('what is used where it is there makes no cycle, also beside one', async t => {
  t.same(resolved(node('a', {}, { b: '*' }), node('b', { a: '*' })).order, ['a', 'b'])
  const { problems, order } = resolved(
    node('a', { b: '*' }),
    node('b', { a: '*' }),
    node('c', {}, { a: '*' })
  )
  t.same([...problems.keys()], ['a', 'b'])
  t.same(order, ['c'])
  const circle = [node('a', { b: '*' }), node('b', { a: '*' })]
  t.same(dependentsOf('a', circle, offersOf(circle, [])), ['b', 'a'])
})
