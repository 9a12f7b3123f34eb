import { ShortDisk } from 'busbar/sdk/disk'
import { RestoreError } from './restore-target.js'

const roomHelps = 'make room on it, and run it again'
/** As PostgreSQL says it. */
const fullOfDatabase = '53100'
const saysFull = /no space left on device|disk quota exceeded/i

/** What a restore failed with; where that is a full disk, it says which, and what helps. `directory`: where the installation is. */
export function restoreFailure(error: unknown, directory: string): unknown {
  if (!(error instanceof Error) || error instanceof RestoreError) return error
  if (error instanceof ShortDisk) return new RestoreError(`${error.message}: ${roomHelps}`, { cause: error })
  const code = 'code' in error ? String(error.code) : ''
  const isOfDatabase = code === fullOfDatabase
  if (!isOfDatabase && !['ENOSPC', 'EDQUOT'].includes(code) && !saysFull.test(error.message)) return error
  const disk = isOfDatabase ? 'the database' : directory
  return new RestoreError(`the disk of ${disk} is full: ${roomHelps}. What failed: ${error.message}`, {
    cause: error
  })
}
