import { execFile } from 'node:child_process'
import { rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { type SecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { type Lab, startLab } from './lab.js'

export const mebi = 2 ** 20

const postgresDisk = { images: ['busybox:lab', 'postgres:14', 'postgres:15'], diskBytes: 2048 * mebi }

/** A platform with an engine of its own, which may be killed, and whose disk is small. */
export async function startEngineLab(
  t: Test,
  disk: { readonly images: readonly string[]; readonly diskBytes: number } = postgresDisk
): Promise<Lab & { readonly engine: SecondEngine }> {
  const engine = await startSecondEngine(disk)
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    closing ??= engine.close()
    await closing
  }
  t.teardown(close)
  // A teardown that throws is the last one, and a process with an engine does not end.
  return { ...(await startLab(t, { environment: engine.environment }, close)), engine }
}

const run = promisify(execFile)
/** A smaller piece is taken sooner: others write meanwhile. */
const pieceBytes = 128 * mebi

/**
 * Takes the disk of the engine but for so many bytes, until it is taken away again. What others write meanwhile is part of what is
 * taken.
 */
export async function fillDisk(
  { dataRoot }: Pick<SecondEngine, 'dataRoot'>,
  leftBytes: number
): Promise<() => Promise<void>> {
  const path = join(dataRoot, 'filler')
  for (let taken = 0; ; ) {
    const { bavail, bsize } = await statfs(dataRoot)
    const wanted = Math.min(bavail * bsize - leftBytes, pieceBytes)
    if (wanted < bsize) break
    // One that does not fit any more takes nothing.
    if (await allocate(path, taken, Math.floor(wanted))) taken += Math.floor(wanted)
  }
  return async () => {
    await rm(path, { force: true })
  }
}

async function allocate(path: string, from: number, bytes: number): Promise<boolean> {
  try {
    await run('fallocate', ['-o', String(from), '-l', String(bytes), path])
    return true
  } catch (error) {
    if (/No space left on device/.test(String(error))) return false
    throw error
  }
}
