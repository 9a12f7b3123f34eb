import type { DatabaseRow } from '../records/database-row.js'

/** How archives of files are written, which no server reads: the files of a volume, or what a command has made. */
export const fileFormats = { volume: 'volume-tar', command: 'command-tar' } as const

/** How the content of a database without dumps is written. */
export const filesFormat = ({ backup_mode: mode }: Pick<DatabaseRow, 'backup_mode'>): string =>
  mode === 'command' ? fileFormats.command : fileFormats.volume
