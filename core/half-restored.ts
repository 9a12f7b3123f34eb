import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Below BUSBAR_DIR: where a restore puts what it has not yet put into place. The file is there from its first change to its last. */
export const restoreFolder = 'restore'
export const restoreStateFile = join(restoreFolder, 'state.json')

/** A restore was cut off: what is there may be half of the one and half of the other. */
export class HalfRestoredError extends Error {}

/** Throws while a restore of this installation is under way, or was cut off. */
export async function refuseHalfRestored(directory: string): Promise<void> {
  const path = join(directory, restoreStateFile)
  const isThere = await readFile(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    }
  )
  if (isThere)
    throw new HalfRestoredError(
      `a restore into ${directory} was begun and has not been finished: run the same "busbar restore" again, which goes on or begins anew, or "busbar restore --abandon" to go back to what was there before`
    )
}
