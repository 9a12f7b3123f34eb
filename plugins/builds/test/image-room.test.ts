import { test } from 'tap'
import { ImageRoom } from '../disk/image-room.js'

const gibibyte = 2 ** 30
const forever = new AbortController().signal

/** `look` is called where an image waits, half a second each time. */
function roomOf(freeGib: number, look: () => void = () => {}) {
  const state = {
    now: Date.UTC(2026, 0, 1),
    freeBytes: freeGib * gibibyte,
    unneededGib: 0,
    slowRounds: 0,
    isHeld: false,
    endableGib: 0
  }
  const disk = { isEngines: true, what: 'the disk of the Docker Engine', path: '/var/lib/docker' }
  const room = new ImageRoom({
    disks: async () => [
      { ...disk, freeBytes: 1000 * gibibyte },
      { ...disk, freeBytes: state.freeBytes, bytesPerInode: 16_384 }
    ],
    makeRoom: async () => {
      if (state.slowRounds > 0) {
        state.now += 10_000
        state.slowRounds--
        return false
      }
      state.freeBytes += state.unneededGib * gibibyte
      state.unneededGib = 0
      return true
    },
    othersHold: async () => state.isHeld,
    endLargest: async ({ bytes }) => {
      if (bytes >= state.endableGib * gibibyte) return false
      state.unneededGib += state.endableGib
      state.endableGib = 0
      return true
    },
    floorBytes: gibibyte,
    clock: {
      elapsed: () => state.now,
      sleep: async ms => {
        state.now += ms
        look()
      }
    }
  })
  const reserve = async (image: string, gib: number, inodes = 1) =>
    await room.reserve({ image, deploymentId: image }, { bytes: gib * gibibyte, inodes }, forever)
  return { reserve, room, state }
}
const refused = { status: 409, code: 'E_BUILD_DISK_SHORT' }

test('an image is unpacked only where the floor stays free', async t => {
  const { reserve, state } = roomOf(10)
  const begunAt = state.now
  await t.rejects(reserve('huge', 9.5), {
    ...refused,
    message: /huge takes 9.5 GiB when it is unpacked.* has 10.0 GiB free, of which 1.3 GiB stay free:/
  })
  await t.rejects(reserve('many', 0, 600_000), { ...refused, message: /many takes 9.2 GiB/ }, 'by its inodes')
  t.equal(state.now, begunAt, 'at once: nobody gives it room')
})

test('an image waits for the room that others take, and those that fit do not wait', async t => {
  const ending: Array<() => void> = []
  const { reserve } = roomOf(10, () => ending.shift()?.())
  const first = await reserve('first', 5)
  ending.push(
    () => {},
    () => first.end(true)
  )
  const [second, small] = await Promise.all([reserve('second', 5), reserve('small', 1)])
  t.same(ending, [], 'the second came when the first had ended')
  await t.rejects(reserve('third', 5), { ...refused, message: /, and 6.0 GiB are promised to others/ })
  second.end(true)
  small.end(true)
  await t.resolves(reserve('third', 8.75))
})

test('what the engine may still unpack keeps its room for as long as that may take', async t => {
  const { reserve, state } = roomOf(10)
  const cut = await reserve('cut', 8.7)
  cut.end(false)
  const begunAt = state.now
  await t.resolves(reserve('next', 5))
  const waitedMs = state.now - begunAt
  t.ok(waitedMs > 180_000 && waitedMs < 200_000, `${waitedMs} ms`)
})

test('a wait for room ends with its deploy', async t => {
  const cancel = new AbortController()
  const reason = new Error('cancelled')
  const { reserve, room } = roomOf(10, () => cancel.abort(reason))
  await reserve('first', 8.7)
  await t.rejects(
    room.reserve({ image: 'second', deploymentId: 'second' }, { bytes: gibibyte, inodes: 1 }, cancel.signal),
    reason
  )
})

test('what nobody needs goes before an image is refused, and while one waits', async t => {
  const { reserve, state } = roomOf(3)
  const begunAt = state.now
  state.unneededGib = 7
  const first = await reserve('first', 8)
  t.equal(state.now, begunAt, 'at once')

  const later = roomOf(10, () => {
    if (later.state.now > begunAt + 60_000 && later.state.freeBytes === 10 * gibibyte)
      later.state.unneededGib = 5
  })
  await later.reserve('first', 8)
  await t.resolves(later.reserve('second', 5))
  first.end(true)
})

test('no image is refused while unused data is being removed, unless that takes for ever', async t => {
  const { reserve, state } = roomOf(3)
  Object.assign(state, { unneededGib: 7, slowRounds: 5 })
  await t.resolves(reserve('first', 8))
  Object.assign(state, { slowRounds: 1000 })
  await t.rejects(reserve('second', 8), refused)
})

test('an image waits for what builds that run may leave when they end, and not for ever', async t => {
  const { reserve, state } = roomOf(3, () => {
    if (state.now === begunAt + 60_000) Object.assign(state, { unneededGib: 7, isHeld: false })
  })
  const begunAt = state.now
  state.isHeld = true
  await t.resolves(reserve('first', 8))
  t.ok(state.now <= begunAt + 66_000)
  await t.rejects(roomOf(3).reserve('alone', 8), refused)
  const holding = roomOf(3)
  holding.state.isHeld = true
  await t.rejects(holding.reserve('second', 8), refused)
  t.ok(holding.state.now - begunAt >= 5 * 60_000)
})

test('an image that waited for five minutes ends what holds more than it takes, and gets that room', async t => {
  const waiting = roomOf(3)
  Object.assign(waiting.state, { isHeld: true, endableGib: 7 })
  const begunAt = waiting.state.now
  await t.resolves(waiting.reserve('first', 6))
  t.ok(waiting.state.now - begunAt >= 5 * 60_000)
  t.ok(waiting.state.now - begunAt < 5 * 60_000 + 10_000)
  const larger = roomOf(3)
  Object.assign(larger.state, { isHeld: true, endableGib: 7 })
  await t.rejects(larger.reserve('second', 7), refused)
  t.equal(larger.state.endableGib, 7)
})

test('what others held until a moment ago is removed before an image that waits for it is refused', async t => {
  const { reserve, state } = roomOf(3, () => {
    if (state.now === begunAt + 61_500) Object.assign(state, { unneededGib: 7, isHeld: false })
  })
  const begunAt = state.now
  state.isHeld = true
  await t.resolves(reserve('first', 8))
  t.equal(state.now, begunAt + 61_500)
})

test('one image is not promised all the room: a small one beside it does not wait', async t => {
  const large = roomOf(10)
  await t.rejects(large.reserve('all', 9), { ...refused, message: /of which 1.3 GiB stay free:/ })
  await large.reserve('first', 8.75)
  const begunAt = large.state.now
  await t.resolves(large.reserve('small', 0.25))
  t.equal(large.state.now, begunAt)
  await t.rejects(large.reserve('another', 0.25), {
    ...refused,
    message: /of which 1.0 GiB stay free, and 9.0 GiB/
  })

  const short = roomOf(1.5)
  await t.rejects(short.reserve('first', 0.4), refused)
  await short.reserve('first', 0.375)
  await t.resolves(short.reserve('small', 0.125))
  await t.rejects(roomOf(0.5).reserve('any', 0.1), { ...refused, message: /of which 1.0 GiB stay free/ })
})
