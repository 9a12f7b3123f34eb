import { mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { readEntries } from './sources.mjs'

/** Writes a file beside its place and renames it: no reader sees half of one. Leaves one alone that is the same; whether it was not. */
export function replaceFile(target, content) {
  if (isSame(target, content)) return false
  mkdirSync(dirname(target), { recursive: true })
  const part = join(dirname(target), `.part-${process.pid}-${target.slice(dirname(target).length + 1)}`)
  writeFileSync(part, content)
  renameSync(part, target)
  return true
}

function isSame(target, content) {
  try {
    return readFileSync(target).equals(Buffer.from(content))
  } catch (error) {
    if (error.code === 'ENOENT') return false
    throw error
  }
}

/**
 * Removes what is not wanted any more; how many files. What another build has written since this one looked at the sources
 * stays, and so do the half-written files of a build that lives.
 */
export function removeOthers(out, wanted, startedAt) {
  let removed = 0
  sweep(out)
  return removed

  function sweep(folder) {
    let kept = 0
    for (const entry of readEntries(folder)) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) {
        if (sweep(path) > 0) kept++
      } else if (
        wanted.has(relative(out, path)) ||
        isPartOfLivingBuild(entry.name) ||
        isNewerThan(path, startedAt)
      ) {
        kept++
      } else {
        rmSync(path, { force: true })
        if (!path.endsWith('.map')) removed++
      }
    }
    if (kept === 0 && folder !== out) removeFolder(folder)
    return kept
  }
}

function removeFolder(folder) {
  try {
    rmdirSync(folder)
  } catch (error) {
    // another build is putting something into it, or has removed it
    if (error.code !== 'ENOTEMPTY' && error.code !== 'ENOENT') throw error
  }
}

function isNewerThan(path, time) {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats !== undefined && stats.ctimeMs >= time
}

function isPartOfLivingBuild(name) {
  const pid = /^\.part-(\d+)-/.exec(name)?.[1]
  if (pid === undefined) return false
  try {
    process.kill(Number(pid), 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}
