import type { ContainerDiskUse, ContainerFileUse } from 'busbar/api/containers'
import type { DiskUse } from './disk-use-decision.js'

/** What is known of a container, but for what has to do with time and its owner. */
export type Known = Omit<DiskUse, 'grownBytes' | 'ownerId'> & {
  /** Bytes in files that were made or changed lately, or have no name; undefined where that was not looked for. */
  readonly recentBytes: number | undefined
}

/** By the engine's account alone. */
export const byEngine = ({ id, owner, isRunning, bytes, isLate }: ContainerDiskUse): Known => ({
  id,
  owner,
  isRunning,
  bytes,
  namelessBytes: 0,
  inodes: 0,
  grownInodes: 0,
  names: 0,
  isCut: isLate,
  recentBytes: undefined
})

/**
 * Both accounts of each container, of one that has come meanwhile the one that there is. Its directories take room that
 * the engine does not count; a file with holes takes less than the engine counts.
 */
export function withFiles(
  known: readonly ContainerDiskUse[],
  files: readonly ContainerFileUse[]
): readonly Known[] {
  const uses = new Map(known.map(use => [use.id, use]))
  const counted = files.map(
    ({ id, owner, isRunning, bytes, recentBytes, namelessBytes, inodes, recentInodes, names, isCut }) => ({
      id,
      owner,
      isRunning,
      bytes: Math.max(uses.get(id)?.bytes ?? 0, bytes) + namelessBytes,
      namelessBytes,
      inodes,
      grownInodes: recentInodes,
      names,
      isCut,
      recentBytes: recentBytes + namelessBytes
    })
  )
  const ids = new Set(counted.map(({ id }) => id))
  return [...counted, ...known.filter(({ id }) => !ids.has(id)).map(byEngine)]
}

/** Of one for which there was no time, at least what was known before: it does not get less by taking long. */
export function atLeast(use: Known, before: Known | undefined): Known {
  if (!use.isCut || before === undefined) return use
  return {
    ...use,
    bytes: Math.max(use.bytes, before.bytes),
    inodes: Math.max(use.inodes, before.inodes),
    names: Math.max(use.names, before.names)
  }
}

/**
 * What it has written since. One that was not there before has written all of it since; of one that was, it is in files
 * that have changed, where that was looked for: the two accounts differ in what they count.
 */
export function growthOf({ bytes, recentBytes }: Known, baseline: number | undefined): number {
  return Math.min(Math.max(0, bytes - (baseline ?? 0)), recentBytes ?? Number.POSITIVE_INFINITY)
}
