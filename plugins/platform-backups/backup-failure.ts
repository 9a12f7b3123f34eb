import { isProblem } from 'busbar/sdk'
import { ShortDisk } from 'busbar/sdk/disk'
import { S3Error } from 'busbar/sdk/s3'

const roomierDisk =
  'make room, keep fewer archives (retain_count, retain_days), or set CONTROL_PLANE_BACKUP_DIR to another disk'

/** Why a backup failed, with what helps, for an admin to read. */
export function backupFailure(error: unknown, directory: string): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof S3Error || isProblem(error)) return error.message
  if (error instanceof ShortDisk) return `${error.message}: ${roomierDisk}`
  const code = 'code' in error ? String(error.code) : ''
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `the disk of ${directory} is full: ${roomierDisk}`
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return `${directory} cannot be written to (${code}): give it to the user that the platform runs as, or set CONTROL_PLANE_BACKUP_DIR`
    case '55P03':
      return 'a table was locked by somebody else for a minute: see what holds locks in the database, and try again'
    case '42501':
      return `the role in DATABASE_URL may not read everything that is to be backed up: ${error.message}`
    default:
      return error.message
  }
}
