import type { Owner } from 'busbar/api/containers'
import { test } from 'tap'
import { ownerNames } from '../owner-names.js'

test('owners are named by one question for each kind, and what is gone has no name', async t => {
  const asked: Array<readonly [type: string, ids: readonly string[]]> = []
  const owners: readonly Owner[] = [
    { projectId: 'p', applicationId: 'a1' },
    { projectId: 'p', applicationId: 'a2' },
    { projectId: 'p', applicationId: 'a1' },
    { projectId: 'gone' }
  ]
  const nameOf = await ownerNames(
    {
      namesOf: async (type: string, ids: readonly string[]) => {
        asked.push([type, ids])
        return type === 'application' ? ids.map(id => ({ id, name: `name of ${id}` })) : []
      }
    } as never,
    owners
  )
  t.same(
    new Map(asked),
    new Map([
      ['application', ['a1', 'a2']],
      ['project', ['gone']]
    ])
  )
  t.same(owners.map(nameOf), ['name of a1', 'name of a2', 'name of a1', ''])
})
