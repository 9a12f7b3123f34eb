import { test } from 'tap'
import { ImageRoom } from '../disk/image-room.js'

const gibibyte = 2 ** 30

function roomOf(freeGib: number) {
  const state = { now: new Date('2026-01-01T00:00:00Z'), freeBytes: freeGib * gibibyte }
  const disk = { isEngines: true, what: 'the disk of the Docker Engine', path: '/var/lib/docker' }
  const room = new ImageRoom({
    disks: async () => [
      { ...disk, freeBytes: 1000 * gibibyte },
      { ...disk, freeBytes: state.freeBytes }
    ],
    floorBytes: gibibyte,
    clock: { now: () => state.now }
  })
  return { room, state }
}
const refused = { status: 409, code: 'E_BUILD_DISK_SHORT' }

test('an image is unpacked only where the floor stays free, whatever else is unpacked', async t => {
  const { room, state } = roomOf(10)
  await t.rejects(room.reserve('huge', 9.5 * gibibyte), {
    ...refused,
    message: /huge takes 9.5 GiB when it is unpacked.* has 10.0 GiB free, of which 1.0 GiB stay free/
  })
  const both = await Promise.allSettled([room.reserve('a', 5 * gibibyte), room.reserve('b', 5 * gibibyte)])
  t.ok(
    both.some(({ status }) => status === 'rejected'),
    'two at once have no room for both'
  )
  for (const one of both) if (one.status === 'fulfilled') one.value.end(true)
  const first = await room.reserve('first', 5 * gibibyte)
  await t.rejects(room.reserve('second', 5 * gibibyte), {
    ...refused,
    message: /5.0 GiB are promised to others/
  })
  first.end(true)
  const second = await room.reserve('second', 5 * gibibyte)
  second.end(false)
  await t.rejects(room.reserve('third', 5 * gibibyte), refused, 'the engine may still unpack it')
  state.now = new Date('2026-01-01T00:06:00Z')
  await t.resolves(room.reserve('third', 5 * gibibyte))
})
