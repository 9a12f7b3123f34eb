import { type DiskRoom, isNearFloor } from './disk-use-decision.js'

/** What is done about a disk that is nearly short before anybody loses something for it: caches go first. */
export type Clearance =
  /** There is room. */
  | { readonly kind: 'unneeded' }
  /** Caches are going. Nobody loses anything meanwhile. */
  | { readonly kind: 'asked'; readonly at: number }
  /** They have gone, or take longer than there is time. What is missing now is somebody's. */
  | { readonly kind: 'over'; readonly at: number }

export const unneeded: Clearance = { kind: 'unneeded' }

/** So long caches are waited for; and while the last of the disk goes. */
const patience = { usual: 10_000, late: 2000 } as const
/** Builds may have left new ones since. */
const renewedAfterMs = 10_000

/** With the disk as it is seen now. One that has just come to be `asked` is to be asked for. */
export function seenWith(state: Clearance, room: DiskRoom | undefined, now: number): Clearance {
  if (room === undefined || !isNearFloor(room)) return unneeded
  if (state.kind === 'unneeded') return { kind: 'asked', at: now }
  return state.kind === 'over' && now - state.at >= renewedAfterMs ? { kind: 'asked', at: now } : state
}

/** Nobody waits for what may never end, and for none while somebody may be about to fill the disk. */
export function waitedFor(state: Clearance, room: DiskRoom | undefined, now: number): Clearance {
  if (state.kind !== 'asked' || room === undefined) return state
  return now - state.at >= patienceMs(room) ? { kind: 'over', at: now } : state
}

export const answered = (now: number): Clearance => ({ kind: 'over', at: now })

function patienceMs({ freeBytes, floorBytes }: DiskRoom): number {
  if (freeBytes >= floorBytes / 2) return patience.usual
  return freeBytes >= floorBytes / 4 ? patience.late : 0
}
