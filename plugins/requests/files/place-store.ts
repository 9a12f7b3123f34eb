import type { Database } from 'busbar/sdk'
import type { FilePlace } from './file-place.js'

interface PlaceRow {
  readonly inode: string
  readonly place: number
  readonly is_mid_line: boolean
  readonly head_length: number
  readonly head_digest: string
  readonly changed_ns: string
}

/** How far access logs were read. It is written with what was read of them, by `TraceStore`. */
export class PlaceStore {
  constructor(private readonly db: Database) {}

  /** Of one that nothing is known of, the place before all files. */
  async placeOf(path: string): Promise<FilePlace> {
    await this.db.sql('insert into $schema.access_log (path) values (?) on conflict do nothing', [path])
    const [row] = await this.db.sql<PlaceRow>('select * from $schema.access_log where path = ?', [path])
    if (row === undefined) throw new Error('the place of an access log is missing')
    return {
      inode: row.inode,
      place: row.place,
      isMidLine: row.is_mid_line,
      headLength: row.head_length,
      headDigest: row.head_digest,
      changedNs: row.changed_ns
    }
  }
}
