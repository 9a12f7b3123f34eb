import { test } from 'tap'
import { Cleanup, isTagOf, roleOf } from '../cleanup.js'

test('label and record decide the role of a container', async t => {
  t.equal(roleOf('a', 'success', 'a'), 'serving')
  t.equal(roleOf('b', 'success', 'a'), 'retired', 'it served once and stops with grace')
  t.equal(roleOf('b', 'failed', 'a'), 'failed')
  t.equal(roleOf('b', 'deploying', 'a'), 'in-progress')
  t.equal(roleOf('b', undefined, 'a'), 'foreign', 'a deployment of another installation')
  t.equal(roleOf(undefined, undefined, 'a'), 'foreign')
  t.equal(roleOf('b', 'success', null), 'retired')
})

test('each image of the build of a deployment is known by its tag', async t => {
  const id = '12345678-9abc-4def-8012-3456789abcde'
  t.equal(isTagOf('web-0123456789abcdef0123:12345678', id), true)
  t.equal(isTagOf(`busbar-build-application-files:${id}`, id), true, 'the files that its ADD has fetched')
  t.equal(isTagOf('web-0123456789abcdef0123:12345679', id), false)
  t.equal(isTagOf('busbar-build-application-files:12345678-9abc-4def-8012-3456789abcdf', id), false)
})

test('a version that begins to serve while the containers are looked at is not taken for one that has served', async t => {
  let isRecorded = false
  /** The deploy is recorded between the first look at the record and the next one. */
  const lookedAt = <T>(seen: T): T => {
    isRecorded = true
    return seen
  }
  const container = (deploymentId: string) => ({
    id: deploymentId,
    status: 'running',
    owner: { deploymentId }
  })
  const cleanup = new Cleanup({
    runtime: { list: async () => [container('old'), container('new')] },
    store: {
      statesOf: async () =>
        lookedAt(
          new Map([
            ['old', 'success'],
            ['new', isRecorded ? 'success' : 'deploying']
          ])
        )
    },
    registry: { deployable: async () => lookedAt({ containerDeploymentId: isRecorded ? 'new' : 'old' }) }
  } as unknown as ConstructorParameters<typeof Cleanup>[0])
  const found = await cleanup.containersByRole('application')
  t.match(
    found.map(({ container: { id }, role }) => [id, role]),
    [
      ['old', 'retired'],
      ['new', 'in-progress']
    ]
  )
})
