import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { RoomMaker } from '../disk/room-maker.js'
import { clock } from './kit.js'

/** What is removed takes until the test says that it is done. */
function openRoom() {
  const rounds: Array<(isAll?: boolean) => void> = []
  const room = new RoomMaker({
    clock,
    remove: async () => await new Promise<boolean>(resolve => rounds.push((isAll = true) => resolve(isAll)))
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

test('a caller waits ten seconds unless told otherwise, and no longer than until room is made', async t => {
  const sleeps: Array<{ readonly ms: number; readonly signal: AbortSignal | undefined }> = []
  const time = testClock()
  const rounds: Array<(isAll?: boolean) => void> = []
  const room = new RoomMaker({
    clock: {
      sleep: async (ms, signal) => {
        sleeps.push({ ms, signal })
        await time.sleep(ms, signal)
      }
    },
    remove: async () => await new Promise<boolean>(resolve => rounds.push((isAll = true) => resolve(isAll)))
  })
  const making = room.make()
  t.equal(sleeps[0]?.ms, 10_000)
  rounds[0]?.()
  t.equal(await making, true)
  t.equal(sleeps[0]?.signal?.aborted, true, 'nothing is waited for any more')
  const late = room.make(5)
  await time.advance(5)
  t.equal(await late, false)
  t.equal(sleeps[1]?.ms, 5)
  t.equal(room.isDue(0), false, 'it is being made')
  rounds[1]?.()
  const after = room.make()
  t.equal(rounds.length, 2, 'the round that is ending may have passed by what came to be unneeded')
  await time.advance(0)
  rounds[2]?.()
  t.equal(await after, true)
  t.equal(room.isDue(0), true, 'any time is long enough')
  t.equal(room.isDue(60_000), false)
})

test('an engine that is away while room is made makes no caller wait for the next one', async t => {
  let calls = 0
  const room = new RoomMaker({
    clock,
    remove: async () => {
      calls++
      throw new Error('the engine is away')
    }
  })
  t.same(await Promise.all([room.make(), room.make()]), [true, true])
  t.equal(calls, 2)
  t.equal(await room.make(), true)
  t.equal(calls, 3, 'each asks again')
})

test('room that is made for ten seconds is not said to come in a moment, and is due by the time of the last', async t => {
  let now = 100_000
  performance.now = () => now
  t.teardown(() => {
    Reflect.deleteProperty(performance, 'now')
  })
  const { room, rounds } = openRoom()
  const making = room.make()
  now += 9_999
  t.equal(room.isMaking, true)
  now += 1
  t.equal(room.isMaking, false)
  rounds[0]?.()
  await making
  now += 4_999
  t.equal(room.isDue(5_000), false)
  now += 1
  t.equal(room.isDue(5_000), true)
})

test('a caller that comes during the second round gets a third one', async t => {
  const { room, rounds } = openRoom()
  const first = room.make()
  const second = room.make()
  rounds[0]?.()
  await first
  const third = room.make()
  t.equal(rounds.length, 2)
  rounds[1]?.()
  await second
  t.equal(rounds.length, 3)
  rounds[2]?.()
  t.equal(await third, true)
})

test('room of which a part takes longer than its round is told of as not made yet', async t => {
  const { room, rounds } = openRoom()
  const making = room.make()
  rounds[0]?.(false)
  t.equal(await making, false)
  t.equal(room.isUnderWay, false, 'and others get rounds of their own')
  const again = room.make()
  rounds[1]?.()
  t.equal(await again, true)
})

test('who only wants room to have been made lately waits for the round under way, and begins none without need', async t => {
  const { room, rounds } = openRoom()
  const ends: string[] = []
  const first = room.renew(10_000).then(() => ends.push('first'))
  const second = room.renew(10_000).then(() => ends.push('second'))
  t.equal(rounds.length, 1)
  t.same(ends, [])
  rounds[0]?.()
  await Promise.all([first, second])
  await room.renew(10_000)
  t.equal(rounds.length, 1)
})
