import { test } from 'tap'
import { RoomMaker } from '../disk/room-maker.js'
import { clock } from './kit.js'

/** What is removed takes until the test says that it is done. */
function openRoom() {
  const rounds: Array<() => void> = []
  const room = new RoomMaker({
    clock,
    remove: async () => await new Promise<void>(resolve => rounds.push(resolve))
  })
  return { room, rounds }
}

test('a caller that asks for room while some is made gets a round that began later, and shares it', async t => {
  const { room, rounds } = openRoom()
  const first = room.make()
  t.equal(rounds.length, 1)
  const later = [room.make(), room.make()]
  t.equal(rounds.length, 1, 'one after another')
  rounds[0]?.()
  t.equal(await first, true)
  t.equal(room.isMaking, true)
  rounds[1]?.()
  t.same(await Promise.all(later), [true, true])
  t.equal(rounds.length, 2)
  t.equal(room.isMaking, false)
})

test('room that takes long to make is told of as not made yet, and one that cannot be made as made', async t => {
  const { room, rounds } = openRoom()
  t.equal(await room.make(0), false)
  t.equal(room.isMaking, true)
  rounds[0]?.()
  const broken = new RoomMaker({
    clock,
    remove: async () => {
      throw new Error('the engine is away')
    }
  })
  t.equal(await broken.make(), true)
})

test('room is due again once a build has ended, and not before', async t => {
  const { room, rounds } = openRoom()
  t.equal(room.isDue(10_000), true)
  const making = room.make()
  room.noteUnneeded()
  t.equal(room.isDue(10_000), false, 'it is being made')
  rounds[0]?.()
  await making
  t.equal(room.isDue(10_000), true, 'the round may have passed by what has ended meanwhile')
  const again = room.make()
  rounds[1]?.()
  await again
  t.equal(room.isDue(10_000), false)
})
