import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from '../archive/archive-writer.js'

/** A restore that is not over. While its file is there the platform does not start. */
export interface RestoreState {
  /** A UUID. The database carries it once everything in it is as in the archive. */
  readonly restore: string
  /** Below BUSBAR_DIR: where the files go that were there before. */
  readonly aside: string
}

export async function readState(file: string): Promise<RestoreState | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  try {
    const value = JSON.parse(text) as RestoreState
    if (typeof value.restore === 'string' && typeof value.aside === 'string') return value
  } catch {
    // Below.
  }
  throw new Error(`${file} cannot be read: it is not as a restore has written it`)
}

/** It has its name once it is whole and on disk. */
export async function writeState(file: string, state: RestoreState): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.tmp`
  const handle = await open(draft, 'w', 0o600)
  try {
    await handle.writeFile(`${JSON.stringify(state)}\n`)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(draft, file)
  await syncFolder(dirname(file))
}

/** The last thing that a restore does. */
export async function removeState(file: string): Promise<void> {
  await rm(file, { force: true })
  await syncFolder(dirname(file))
}
