import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { type FileHandle, readdir, stat } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import type { FilePlace } from './file-place.js'

/** A file of a log: the one that is written to, or one that was renamed. */
export interface LogFile {
  readonly path: string
  readonly inode: string
  readonly changedNs: bigint
}

const longestHead = 1024

const fileOf = (path: string, { ino, mtimeNs }: BigIntStats): LogFile => ({
  path,
  inode: String(ino),
  changedNs: mtimeNs
})

/** Undefined where there is none that can be looked at. */
export async function lookAt(path: string): Promise<LogFile | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  return found?.isFile() === true ? fileOf(path, found) : undefined
}

/** The files that a log was renamed to, those first that were written first. */
export async function rotatedFiles(path: string): Promise<readonly LogFile[]> {
  const names = await readdir(dirname(path)).catch(() => [])
  const files: LogFile[] = []
  for (const name of names.filter(name => isRotatedName(name, basename(path)))) {
    const file = await lookAt(join(dirname(path), name))
    if (file !== undefined) files.push(file)
  }
  return files.sort(inOrder)
}

/** Of `access.log`: `access-2026-01-31T12-00-00.log`, and `access.log.1`. */
export function isRotatedName(name: string, current: string): boolean {
  if (name.startsWith(`${current}.`)) return /^\d+$/.test(name.slice(current.length + 1))
  const ending = extname(current)
  const stem = current.slice(0, current.length - ending.length)
  if (!name.startsWith(stem) || !name.endsWith(ending)) return false
  const between = name.slice(stem.length, name.length - ending.length)
  return /^[-._]/.test(between) && /\d/.test(between)
}

/** What is written within one tick of the file system has one time; names are made of times or numbers. */
const inOrder = (a: LogFile, b: LogFile): number =>
  a.changedNs === b.changedNs ? (a.path < b.path ? -1 : 1) : a.changedNs < b.changedNs ? -1 : 1

/** The one that was written behind a file, which may be gone; undefined where that is the one that is written to now. */
export function fileBehind(
  rotated: readonly LogFile[],
  { inode, changedNs }: Pick<FilePlace, 'inode' | 'changedNs'>
): LogFile | undefined {
  const at = rotated.findIndex(file => file.inode === inode)
  return at >= 0 ? rotated[at + 1] : firstSince(rotated, changedNs)
}

/** The first that was written after a time. */
export const firstSince = (rotated: readonly LogFile[], changedNs: string): LogFile | undefined =>
  rotated.find(file => file.changedNs > BigInt(changedNs))

/** A digest of the beginning of a file, of which so many bytes were read. */
export async function headOf(
  file: FileHandle,
  place: number
): Promise<Pick<FilePlace, 'headLength' | 'headDigest'>> {
  const bytes = Buffer.alloc(Math.min(place, longestHead))
  const { bytesRead } = await file.read(bytes, 0, bytes.length, 0)
  const headDigest = createHash('sha256').update(bytes.subarray(0, bytesRead)).digest('base64url')
  return { headLength: bytesRead, headDigest: bytesRead === 0 ? '' : headDigest }
}

/** Whether a file is the one in which that place is. */
export async function holdsPlace(
  file: FileHandle,
  { place, headLength, headDigest }: FilePlace
): Promise<boolean> {
  if (place === 0) return true
  const { size } = await file.stat()
  if (size < place) return false
  const head = await headOf(file, headLength)
  return head.headLength === headLength && head.headDigest === headDigest
}
