import type { Catalog } from '../database/catalog.js'

/** The form of archives that this release writes, and the latest that it reads. */
export const formatVersion = 1
export const formatName = 'busbar-backup'
/** In bytes. It is held in memory as a whole: some 260 000 files. */
export const longestManifest = 64 * 1024 * 1024

/** Some bytes of the archive under a name of their own: in pieces, which come one after another. */
export interface PartFacts {
  /** `table/000012`: pieces are `table/000012/000001`, … */
  readonly name: string
  readonly bytes: number
  readonly pieces: number
  /** Of all bytes in a row; hexadecimal digits. */
  readonly sha256: string
}

/** The rows of a table. */
export interface TablePart extends PartFacts {
  readonly schema: string
  readonly table: string
}

/** A file of the data directory. */
export type KeptFile =
  | { readonly path: string; readonly kind: 'file'; readonly mode: number; readonly part: PartFacts }
  | { readonly path: string; readonly kind: 'link'; readonly target: string }
  | { readonly path: string; readonly kind: 'folder'; readonly mode: number }

/** The last entry of an archive, `manifest.json`: what is in it. Without it the archive is not whole. */
export interface Manifest {
  readonly format: typeof formatName
  readonly version: number
  /** That of the run, a UUID. */
  readonly id: string
  /** RFC 3339: the moment that everything is as of. */
  readonly created_at: string
  /** Of the platform. */
  readonly release: string
  readonly postgres: { readonly version: string; readonly major: number }
  /** Environment variables that the platform was given, by name. */
  readonly variables: readonly string[]
  readonly catalog: Catalog
  readonly tables: readonly TablePart[]
  readonly files: readonly KeptFile[]
  /** The keys, encrypted once more; null where nobody could open them. */
  readonly keys: PartFacts | null
  /** The ids of the keys that the installation had: those that are needed beside an archive without them. */
  readonly key_ids: readonly string[]
  /** What is not in it, in words. */
  readonly left_out: readonly string[]
}

/** It is no archive of ours, is not whole, was changed, or is of a later release. Nothing has been touched. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
}

/** Throws an `ArchiveError` for what is no manifest that this release can read. */
export function parseManifest(text: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ArchiveError('the manifest of the archive cannot be read', { cause: error })
  }
  const found = value as Partial<Manifest> | null
  if (typeof found !== 'object' || found === null || found.format !== formatName)
    throw new ArchiveError('it is no backup of this platform')
  if (typeof found.version !== 'number' || found.version > formatVersion)
    throw new ArchiveError(
      `the archive has form ${String(found.version)}, and this release (${formatVersion}) reads no later one than its own: restore it with release ${String(found.release)} or later`
    )
  for (const path of (found.files ?? []).map(file => file.path))
    if (!isInside(path)) throw new ArchiveError(`the archive holds a file outside of its folder: ${path}`)
  return found as Manifest
}

/** Whether a path of an archive stays below the folder that it is unpacked into. */
export const isInside = (path: string): boolean =>
  path !== '' &&
  !path.startsWith('/') &&
  !path.includes('\\') &&
  !path.includes('\0') &&
  path.split('/').every(part => part !== '' && part !== '.' && part !== '..')
