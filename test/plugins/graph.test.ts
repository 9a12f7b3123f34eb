import { test } from 'tap'
import { dependentsOf, type GraphNode, resolveGraph } from '../../core/plugins/graph.js'

const node = (
  id: string,
  requires: Record<string, string> = {},
  optional: Record<string, string> = {},
  version = '1.0.0'
): GraphNode => ({ id, version, sdk: '^0.1.0', requires, optional })

test('plugins are ordered after everything they require or optionally use', async t => {
  const { order, problems } = resolveGraph(
    [
      node('deployments', { applications: '^1.0.0' }, { direct: '^1.0.0' }),
      node('applications', { projects: '^1.0.0' }),
      node('direct', { applications: '^1.0.0' }),
      node('projects')
    ],
    '0.1.0'
  )
  t.equal(problems.size, 0)
  t.same(order, ['projects', 'applications', 'direct', 'deployments'])
})

test('a missing, an out-of-range and a circular dependency are each named with the plugin at fault', async t => {
  const { order, problems } = resolveGraph(
    [
      node('a', { b: '^1.0.0' }),
      node('b', { a: '^1.0.0' }),
      node('c', { nowhere: '^1.0.0', old: '^2.0.0' }),
      node('old'),
      node('fine')
    ],
    '0.1.0'
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
  const { problems } = resolveGraph([{ ...node('x'), sdk: '^9.0.0' }], '0.1.0')
  t.match(problems.get('x'), /written for SDK \^9\.0\.0, this is 0\.1\.0/)
})

test('an optional dependency that is not installed is no problem', async t => {
  t.equal(resolveGraph([node('x', {}, { nowhere: '*' })], '0.1.0').problems.size, 0)
})

test('the dependents of a plugin include those that need it through others', async t => {
  const nodes = [
    node('projects'),
    node('applications', { projects: '*' }),
    node('deployments', { applications: '*' }),
    node('tokens')
  ]
  t.same(dependentsOf('projects', nodes), ['applications', 'deployments'])
})
