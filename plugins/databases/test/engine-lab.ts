import { execFile } from 'node:child_process'
import { rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { type SecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { type Lab, startLab } from './lab.js'

export const mebi = 2 ** 20

/** A platform with an engine of its own, which may be killed, and whose disk is small. */
export async function startEngineLab(t: Test): Promise<Lab & { readonly engine: SecondEngine }> {
  const engine = await startSecondEngine({
    images: ['busybox:lab', 'postgres:14', 'postgres:15'],
    diskBytes: 2048 * mebi
  })
  t.teardown(async () => {
    await engine.close()
  })
  return { ...(await startLab(t, { environment: engine.environment })), engine }
}

/** Takes the disk of the engine but for so many bytes, until it is taken away again. */
export async function fillDisk({ dataRoot }: SecondEngine, leftBytes: number): Promise<() => Promise<void>> {
  const { bavail, bsize } = await statfs(dataRoot)
  const path = join(dataRoot, 'filler')
  await promisify(execFile)('fallocate', ['-l', String(Math.floor(bavail * bsize - leftBytes)), path])
  return async () => {
    await rm(path, { force: true })
  }
}
