import type { ContainerDiskUse } from 'busbar/api/containers'
import { enough, type Giving, givingOwner, type Held } from './giving-owner.js'
import {
  type ImageRecord,
  imageHoldings,
  type OwnedImage,
  type SpareImage,
  spareImages
} from './image-holdings.js'
import { noneRestarted, type Restarted } from './restarts.js'

/** What a container has written, and how much of that since the disk was last seen with room. */
export interface DiskUse extends Pick<ContainerDiskUse, 'id' | 'owner' | 'isRunning' | 'bytes'> {
  /** The user whose project it is in. */
  readonly ownerId: string
  readonly grownBytes: number
  /** Of `bytes`, what is in files that have no name any more; 0 where that was not looked for. */
  readonly namelessBytes: number
  /** 0 where they were not counted, as the two below. */
  readonly inodes: number
  readonly grownInodes: number
  /** Each hard link of a file is one. */
  readonly names: number
  /** It has more than could be looked at in the time that one container gets. */
  readonly isCut: boolean
}

/** What one container may have; 0 = no limit. */
export interface DiskUseLimits {
  readonly bytes: number
  readonly inodes: number
}

/** Of the engine's disk. */
export interface DiskRoom {
  readonly freeBytes: number
  /** With less, nothing is built or pulled. */
  readonly floorBytes: number
  /** What is missing since it was last seen with room. */
  readonly lostBytes: number
  /** How long less than the floor has been free; 0 where more is. */
  readonly shortMs: number
  /** Where inodes are what ends first: what one counts as. The bytes above are such, then. */
  readonly bytesPerInode?: number
}

interface Stop {
  /** It keeps what it has written. */
  readonly kind: 'stop'
  /** Which limit it has passed; `time`: that of counting its files. */
  readonly of: 'bytes' | 'inodes' | 'time'
  readonly use: DiskUse
}

interface Removal {
  /** What it has written is gone. */
  readonly kind: 'remove'
  /** Which of the two was nearly used up. */
  readonly of: 'bytes' | 'inodes'
  readonly use: DiskUse
  readonly held: OwnersHolding
}

/** What the owner has who gives way. */
interface OwnersHolding {
  /** Bytes of containers and images, or inodes of containers. */
  readonly all: number
  /** Of that, in images. */
  readonly inImages: number
  /** Of that, in build engines. */
  readonly inCaches: number
  readonly because: Giving['because']
}

/** An image that nothing runs from is worth less than what anybody's containers have written. */
interface Release {
  readonly kind: 'release'
  readonly image: SpareImage
  readonly held: OwnersHolding
}

/** What comes back to the disk when its processes end is its own, wherever it was. Nothing that has a name is lost. */
interface Restart {
  readonly kind: 'restart'
  readonly use: DiskUse
}

export type DiskVerdict = Stop | Removal | Restart | Release

/** What is on the disk beside containers. */
export interface Stored {
  readonly stored: readonly OwnedImage[]
  /** What build engines keep. */
  readonly caches: readonly OwnedCache[]
}

interface OwnedCache {
  readonly ownerId: string
  readonly bytes: number
}

/** With what the records say of the images of the owner who gives way. */
export interface KnownStores extends Stored {
  readonly records: readonly ImageRecord[]
}

export const noStores: KnownStores = { stored: [], caches: [], records: [] }

/** About a second of the engine's time. */
const releasedAtOnce = 20
/** Of the floor, as caches: applications make room before a build of others is stopped for want of it. */
const nearShare = 1.5
/** Growth of all containers that is a smaller share of what is missing does not tell what took it: a build, or the machine. */
const tellingShare = 1 / 2
const leastGrowthBytes = 64 * 2 ** 20
/** Or this share of the floor: where that is small, so much would take a disk with room to the floor at once. */
const leastGrowthShare = 1 / 8
/** Of what is missing: an owner of whom less comes back than this loses what it has for nothing. */
const usefulShare = 1 / 4
/** By then caches are gone, and builds that wrote much have ended. */
const lastingMs = 30_000
/** Of the limit: with fewer names, what took so long was the machine. */
const manyShare = 1 / 4

/** It stays short: what was looked at before has not told who has taken it. */
export const isLasting = ({ shortMs }: Pick<DiskRoom, 'shortMs'>): boolean => shortMs >= lastingMs

export const isNearFloor = ({ freeBytes, floorBytes }: Pick<DiskRoom, 'freeBytes' | 'floorBytes'>): boolean =>
  freeBytes < floorBytes * nearShare

/**
 * Each that is over the limit stops. Where the disk is nearly short because of containers, the owner gives way who
 * has most, containers, images and build engines together; where it stays short for whatever reason, too, if that is more than the floor. Who has
 * let it come to that last does not matter: else one could fill it, wait, and have others go for the little that they write.
 *
 * Images that nothing runs from go first. Then containers: with each its image can go, if it has no other one.
 *
 * Files can be hidden from every look: by a process that is another one each moment, or among millions of descriptors. So
 * before anybody loses files for what nothing accounts for, all are restarted, one at a time.
 */
export function decideDiskUse(
  uses: readonly DiskUse[],
  limits: DiskUseLimits,
  room: DiskRoom | undefined,
  restarted: Restarted = noneRestarted,
  stores: KnownStores = noStores
): readonly DiskVerdict[] {
  const removals = room === undefined || !isNearFloor(room) ? [] : removalsFor(uses, room, restarted, stores)
  const removed = new Set(removals.flatMap(one => (one.kind === 'release' ? [] : [one.use])))
  const stops = uses.flatMap(use => {
    const of = use.isRunning && !removed.has(use) ? passed(use, limits) : undefined
    return of === undefined ? [] : [{ kind: 'stop' as const, of, use }]
  })
  return [...stops, ...removals]
}

/** Whether anybody is to give way: only then it matters what images take. */
export const isDeciding = (uses: readonly DiskUse[], room: DiskRoom): boolean =>
  isNearFloor(room) && stateOf(uses, room, noStores) !== undefined

/** Whose images may go now: what the records say of them decides which. */
export function givesNow(uses: readonly DiskUse[], room: DiskRoom, stored: Stored): string | undefined {
  const state = stateOf(uses, room, stored)
  return state?.isRemoval === true && room.bytesPerInode === undefined ? state.giving?.ownerId : undefined
}

function passed({ bytes, names, isCut }: DiskUse, limits: DiskUseLimits): Stop['of'] | undefined {
  if (limits.bytes > 0 && bytes > limits.bytes) return 'bytes'
  if (limits.inodes === 0) return undefined
  if (names > limits.inodes) return 'inodes'
  return isCut && names > limits.inodes * manyShare ? 'time' : undefined
}

interface Weighed extends Held {
  readonly use: DiskUse
  /** What it has written. */
  readonly wrote: number
}

interface State {
  /** Growth of containers is what is missing. */
  readonly isOfContainers: boolean
  readonly missing: number
  readonly giving: Giving | undefined
  /** The one who gives has so much that it does not stay as it is. */
  readonly isRemoval: boolean
  readonly weighed: readonly Weighed[]
  readonly inImages: number
  readonly inCaches: number
}

/** Undefined where nothing is to be done. */
function stateOf(uses: readonly DiskUse[], room: DiskRoom, of: Stored): State | undefined {
  const { bytesPerInode: each } = room
  // How many inodes an image or a cache has is not known.
  const images = imageHoldings(each === undefined ? of.stored : [])
  const caches = bytesByOwner(each === undefined ? of.caches : [])
  const weighed = uses.map(use => {
    const wrote = each === undefined ? use.bytes : use.inodes * each
    return {
      use,
      ownerId: use.ownerId,
      wrote,
      holds: wrote + (images.ofContainer.get(use.id) ?? 0),
      grew: each === undefined ? use.grownBytes : use.grownInodes * each
    }
  })
  const grown = weighed.reduce((sum, { grew }) => sum + grew, 0)
  const least = Math.min(leastGrowthBytes, room.floorBytes * leastGrowthShare)
  const isOfContainers = grown >= Math.max(least, room.lostBytes * tellingShare)
  if (!isOfContainers && !isLasting(room)) return undefined
  const missing = (isOfContainers ? room.floorBytes * nearShare : room.floorBytes) - room.freeBytes
  const others = [...images.ofOwner].map(([ownerId, bytes]) => ({
    ownerId,
    holds: bytes - ofContainers(weighed, ownerId),
    grew: 0
  }))
  const givable = bytesByOwner(
    [...weighed, ...others].map(({ ownerId, holds }) => ({ ownerId, bytes: holds }))
  )
  const gives = (ownerId: string): boolean =>
    !caches.has(ownerId) || (givable.get(ownerId) ?? 0) >= missing * usefulShare
  const kept = [...caches].map(([ownerId, bytes]) => ({ ownerId, holds: bytes, grew: 0 }))
  const all = [...weighed, ...others, ...kept]
  const giving = givingOwner(isLate(room) ? all.filter(({ ownerId }) => gives(ownerId)) : all)
  return {
    isOfContainers,
    missing,
    giving,
    isRemoval:
      giving !== undefined && gives(giving.ownerId) && (isOfContainers || giving.held >= room.floorBytes),
    weighed,
    inImages: images.ofOwner.get(giving?.ownerId ?? '') ?? 0,
    inCaches: caches.get(giving?.ownerId ?? '') ?? 0
  }
}

/**
 * What build engines still keep when caches have gone is in use, or cannot go. Who holds most by that, and has little else to give,
 * has its builds ended for it by the floor. When that has not helped, the next one gives way.
 */
const isLate = (room: DiskRoom): boolean => room.freeBytes < room.floorBytes / 2 || isLasting(room)

function bytesByOwner(all: readonly OwnedCache[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const { ownerId, bytes } of all) sums.set(ownerId, (sums.get(ownerId) ?? 0) + bytes)
  return new Map([...sums].filter(([, bytes]) => bytes > 0))
}

/** Of the images of an owner, what counts for its containers. */
const ofContainers = (weighed: readonly Weighed[], ownerId: string): number =>
  weighed.filter(one => one.ownerId === ownerId).reduce((sum, { holds, wrote }) => sum + holds - wrote, 0)

function removalsFor(
  uses: readonly DiskUse[],
  room: DiskRoom,
  restarted: Restarted,
  stores: KnownStores
): ReadonlyArray<Removal | Restart | Release> {
  const { bytesPerInode: each } = room
  const state = stateOf(uses, room, stores)
  if (state === undefined) return []
  const { giving, isOfContainers, isRemoval, missing, inImages, inCaches } = state
  const unit = each ?? 1
  const held = (by: Giving): OwnersHolding => ({
    all: by.held / unit,
    inImages,
    inCaches,
    because: by.because
  })
  const removals: readonly Removal[] =
    giving === undefined || !isRemoval
      ? []
      : enough(givable(state, giving.ownerId), { ...giving, missing }).map(({ use }) => ({
          kind: 'remove',
          of: each === undefined ? 'bytes' : 'inodes',
          use,
          held: held(giving)
        }))
  if (giving !== undefined && isRemoval && each === undefined) {
    const deployedIds = new Set(uses.flatMap(({ owner }) => owner.deploymentId ?? []))
    const spare = spareImages(stores.stored, stores.records, { ...giving, deployedIds, missing }).slice(
      0,
      releasedAtOnce
    )
    const releases = spare.map(image => ({ kind: 'release' as const, image, held: held(giving) }))
    // One that writes faster than images go does not wait for them.
    const isFast = isOfContainers && room.freeBytes < room.floorBytes / 2
    if (releases.length > 0) return isFast ? [...releases, ...removals] : releases
  }
  const isHidden = room.lostBytes >= leastGrowthBytes || uses.some(({ isCut }) => isCut)
  const isSought = !isOfContainers && (removals.length > 0 || isHidden)
  const suspect = isSought ? nextSuspect(uses, restarted, removals.length > 0) : undefined
  return suspect === undefined ? removals : [{ kind: 'restart', use: suspect }]
}

/**
 * While containers take the last of the disk, one goes for its image, too: else who fills it with images has those go who write.
 * Where it only stays short, none goes for that alone.
 */
function givable({ weighed, isOfContainers }: State, ownerId: string): readonly Weighed[] {
  const own = weighed.filter(one => one.ownerId === ownerId && one.holds > 0)
  if (isOfContainers) return own
  const wrote = own.reduce((sum, one) => sum + one.wrote, 0)
  return wrote < leastGrowthBytes ? [] : own.filter(one => one.wrote > 0)
}

/** First those of which much came back before, then those that could not be looked through. Before a removal none is spared. */
const nextSuspect = (
  uses: readonly DiskUse[],
  { lately, inVain, gaveBack }: Restarted,
  isRemoval: boolean
): DiskUse | undefined =>
  uses
    .filter(({ id, isRunning }) => isRunning && !lately.has(id) && (isRemoval || !inVain.has(id)))
    .sort(
      (a, b) =>
        Number(gaveBack.has(b.id)) - Number(gaveBack.has(a.id)) ||
        Number(b.isCut) - Number(a.isCut) ||
        b.namelessBytes - a.namelessBytes
    )[0]

/** So much came back that it was held by what was restarted: a good part of what was missing. */
export const isTelling = (
  backBytes: number,
  { freeBytes, floorBytes }: Pick<DiskRoom, 'freeBytes' | 'floorBytes'>
): boolean => backBytes >= Math.max(leastGrowthBytes, (floorBytes - freeBytes) / 4)
