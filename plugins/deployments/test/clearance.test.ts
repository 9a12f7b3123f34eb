import { test } from 'tap'
import { answered, type Clearance, seenWith, unneeded, waitedFor } from '../disk/clearance.js'
import type { DiskRoom } from '../disk/disk-use-decision.js'

/** Its floor is 1000. */
const room = (freeBytes: number): DiskRoom => ({ freeBytes, floorBytes: 1000, lostBytes: 0, shortMs: 0 })

/** One look, as the guard makes it. */
const look = (state: Clearance, freeBytes: number, now: number): Clearance =>
  waitedFor(seenWith(state, room(freeBytes), now), room(freeBytes), now)

test('caches are asked to go once the disk is nearly short, and for no longer than that', async t => {
  t.same(look(unneeded, 1500, 5), unneeded)
  const asked = look(unneeded, 1499, 7)
  t.same(asked, { kind: 'asked', at: 7 })
  t.equal(look(asked, 1400, 900), asked, 'it is not begun anew by each look')
  t.same(look(asked, 1500, 900), unneeded, 'with room again nobody waits for anything')
  t.same(look({ kind: 'over', at: 7 }, 1500, 900), unneeded)
})

test('caches are waited for a time that gets shorter with what is left of the disk', async t => {
  const waited = (freeBytes: number, ms: number): string =>
    look({ kind: 'asked', at: 100 }, freeBytes, 100 + ms).kind
  t.equal(waited(500, 9999), 'asked')
  t.equal(waited(500, 10_000), 'over')
  t.equal(waited(499, 1999), 'asked', 'below half of the floor')
  t.equal(waited(499, 2000), 'over')
  t.equal(waited(250, 1999), 'asked')
  t.equal(waited(249, 0), 'over', 'below a quarter of the floor')
  t.equal(look(unneeded, 0, 100).kind, 'over', 'also where the disk is full at once')
})

test('a disk that stays short has caches asked for again, and each time somebody can give way', async t => {
  let state = look(unneeded, 1200, 0)
  const kinds: string[] = []
  for (let now = 0; now <= 40_000; now += 5000) {
    state = look(state, 1200, now)
    kinds.push(state.kind)
  }
  t.same(kinds, ['asked', 'asked', 'over', 'over', 'asked', 'asked', 'over', 'over', 'asked'])
  t.same(look(answered(50), 1200, 10_049), answered(50))
  t.same(look(answered(50), 1200, 10_050), { kind: 'asked', at: 10_050 })
})

test('nothing is known of a disk that cannot be read, and nobody waits for it', async t => {
  t.same(seenWith({ kind: 'asked', at: 1 }, undefined, 2), unneeded)
})
