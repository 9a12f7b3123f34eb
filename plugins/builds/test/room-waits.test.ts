import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { Admission } from '../admission/admission.js'
import { RoomMaker } from '../disk/room-maker.js'
import type { BuildSettings } from '../settings.js'
import { clock, folder } from './kit.js'

const settings: BuildSettings = { checkout_mib: 2048, disk_floor_mib: 1024, wait_minutes: 60 }

const waiting = [{ id: 'build', projectId: 'p', since: new Date() }]
const decided = async (admission: Admission) =>
  (await admission.decide({ running: [], waiting, lastAdmitted: new Map() })).get('build')

test('a decision about the queue, which is locked meanwhile, does not wait for room: the next ones see what came of it', async t => {
  const directory = await folder(t)
  const rounds: Array<() => void> = []
  let late = (): void => {}
  t.teardown(() => late())
  const room = new RoomMaker({
    clock: {
      sleep: async () =>
        await new Promise<void>(resolve => {
          late = resolve
        })
    },
    remove: async () =>
      await new Promise<boolean>(resolve => {
        rounds.push(() => resolve(true))
      })
  })
  const admission = new Admission({
    runtime: {
      info: async () => {
        throw new Error('away')
      }
    },
    instance: { directory: async () => directory },
    clock,
    settings: { ...settings, disk_floor_mib: 1e9 },
    room
  })
  const isMakingRoom = { kind: 'wait', cause: 'disk', reason: /is being removed/ }
  t.match(await decided(admission), isMakingRoom)
  t.match(await decided(admission), isMakingRoom)
  t.equal(rounds.length, 1)
  rounds[0]?.()
  await until(() => !room.isUnderWay, 'the round to end')
  t.match(await decided(admission), { kind: 'refuse' }, 'when the round did not help')
  t.equal(rounds.length, 1)
})

test('while unused data is being removed, builds wait for it and pulls too', async t => {
  let isRemoved = (): void => {}
  let isShort = true
  const directory = await folder(t)
  const room = new RoomMaker({
    clock: { sleep: async () => {} },
    remove: async () => {
      await new Promise<void>(resolve => {
        isRemoved = resolve
      })
      isShort = false
      return true
    }
  })
  const admission = new Admission({
    runtime: {
      info: async () => {
        throw new Error('away')
      }
    },
    instance: { directory: async () => directory },
    clock,
    settings: {
      ...settings,
      get disk_floor_mib() {
        return isShort ? 1e9 : 0
      }
    },
    room
  })
  const verdict = await decided(admission)
  t.match(verdict, { kind: 'wait', cause: 'disk', reason: /waiting for room on the disk/ })
  const pull = admission.requireDisk(new AbortController().signal, async () => false)
  isRemoved()
  await t.resolves(pull)
})

test('a pull waits for what others may give back to a disk that is short', async t => {
  const directory = await folder(t)
  let floor = 1e9
  let asked = 0
  const admission = new Admission({
    runtime: {
      info: async () => {
        throw new Error('away')
      }
    },
    instance: { directory: async () => directory },
    clock: { ...clock, sleep: async () => {} },
    settings: {
      ...settings,
      get disk_floor_mib() {
        return floor
      }
    },
    room: { make: async () => true, isDue: () => true, isUnderWay: false }
  })
  await admission.requireDisk(new AbortController().signal, async () => {
    if (++asked === 3) floor = 0
    return true
  })
  t.equal(asked, 3)
})
