import { test } from 'tap'
import { type Holding, largestHolder } from '../disk/largest-holder.js'

const gibibyte = 2 ** 30
const sizes = new Map([
  ['one', gibibyte],
  ['two', 2 * gibibyte],
  ['six', 6 * gibibyte]
])
const holding = (deploymentId: string, ownerId: string, handles: string[], writtenGib = 0): Holding => ({
  deploymentId,
  ownerId,
  handles,
  writtenBytes: writtenGib * gibibyte
})
const ends = (holdings: readonly Holding[], wantedGib: number) =>
  largestHolder(holdings, { deploymentId: 'waiting', bytes: wantedGib * gibibyte }, sizes)
const waiting = holding('waiting', 'me', [])

test('of the owner whose deployments hold most, the one that holds most ends', async t => {
  const holdings = [
    waiting,
    holding('a1', 'a', ['two']),
    holding('a2', 'a', ['one'], 3),
    holding('b', 'b', [], 5)
  ]
  t.match(ends(holdings, 1), { deploymentId: 'a2', ownerBytes: 6 * gibibyte })
})

test('none ends for an owner who would hold as much', async t => {
  const holdings = [holding('a', 'a', ['six']), waiting]
  t.equal(ends(holdings, 6), undefined)
  t.equal(ends(holdings, 5)?.deploymentId, 'a')
  t.equal(ends([...holdings, holding('own', 'me', ['one'])], 5), undefined, 'with what it has already')
})

test('none of the own owner ends, and what others need too is not counted', async t => {
  t.equal(ends([waiting, holding('own', 'me', ['six'])], 0), undefined)
  t.equal(
    ends([waiting, holding('a', 'a', ['six']), holding('b', 'b', ['six'])], 0),
    undefined,
    'it would stay'
  )
  t.equal(
    ends([waiting, holding('a1', 'a', ['two']), holding('a2', 'a', ['two'])], 1)?.ownerBytes,
    2 * gibibyte
  )
  t.equal(ends([waiting], 0), undefined)
})
