import { Readable } from 'node:stream'
import type { BackupSource } from 'busbar/api/backups'
import { sourceOf as sourceOfKind } from '../../backups/test/source-keeper.js'

export { outcomeOf, putBack, sourceOptions, work } from '../../backups/test/source-keeper.js'

export const sourceOf = (): BackupSource => sourceOfKind('volume')

/** As it comes from a destination. */
export const stored = (tar: Buffer) => ({
  format: 'tar',
  databases: [],
  version: '',
  bytes: tar.length,
  content: Readable.from(
    Array.from({ length: Math.ceil(tar.length / 65_536) }, (_, at) =>
      tar.subarray(at * 65_536, (at + 1) * 65_536)
    )
  )
})
