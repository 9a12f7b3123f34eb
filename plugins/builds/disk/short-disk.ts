import type { Clock, OptionalHandle } from 'busbar/sdk'
import type { EngineDiskReader } from '../api.js'

interface DiskWatchParts {
  readonly clock: Clock
  readonly disk: OptionalHandle<EngineDiskReader>
}

const lookEveryMs = 1000

/**
 * Does something that fills the disk of the engine, and ends it where that runs short: what runs beside it would have no room
 * for what it is told to keep. Nothing is watched where the disk is not seen.
 */
export async function whileThereIsRoom<T>(
  { clock, disk }: DiskWatchParts,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const short = new AbortController()
  const stop = clock.every(lookEveryMs, async () => {
    const seen = await disk
      .get()
      ?.read()
      .catch(() => undefined)
    if (seen !== undefined && seen.freeBytes < seen.floorBytes)
      short.abort(
        new Error(
          `the disk of the engine runs short: ${mebibytes(seen.freeBytes)} MiB are free, and ${mebibytes(seen.floorBytes)} are left for what runs`
        )
      )
  })
  try {
    return await work(AbortSignal.any([signal, short.signal]))
  } catch (error) {
    signal.throwIfAborted()
    short.signal.throwIfAborted()
    throw error
  } finally {
    stop()
  }
}

export const mebibytes = (bytes: number): number => Math.floor(bytes / 2 ** 20)
