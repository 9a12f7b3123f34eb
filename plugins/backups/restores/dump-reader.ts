import type { Readable } from 'node:stream'
import type { StoredDump } from '../api.js'
import type { KeyRing } from '../encryption/key-ring.js'
import type { BackupRow } from '../runs/backup-store.js'
import type { Storages } from '../runs/storages.js'
import { DamagedFile, openFile, type StoredFile, verifyFile } from '../runs/stored-file.js'

interface ReaderParts {
  readonly storages: Storages
  readonly keys: KeyRing
}

interface Reading {
  readonly signal: AbortSignal
  say(message: string): void
  /**
   * That what is filled takes the place of nothing before the dump has come to its end, which proves it: it is read once. Otherwise it
   * is read twice.
   */
  readonly isBeside: boolean
}

/** Gives a stored dump to whoever restores it, and lets nothing be touched by one that is not whole. */
export class DumpReader {
  constructor(private readonly parts: ReaderParts) {}

  /**
   * Reads all of the file first, unless `isBeside`: what is damaged is refused before `use` is called, and so before anything is
   * touched. Then `use` gets it, and has to read it to its end.
   */
  async withDump<T>(
    backup: BackupRow,
    projectId: string,
    { signal, say, isBeside }: Reading,
    use: (dump: StoredDump) => Promise<T>
  ): Promise<T> {
    const { storages, keys } = this.parts
    const { format, key, sha256 } = backup
    if (backup.status !== 'succeeded' || format === null || key === null || sha256 === null)
      throw new DamagedFile('the backup has no file')
    const { storage, name } = await storages.open(projectId, backup)
    const file: StoredFile = {
      key,
      bytes: backup.size_bytes,
      rawBytes: backup.raw_bytes,
      sha256,
      identity: backup.key_id === null ? null : await keys.identity(backup.key_id)
    }
    say(`${key} is read on ${name} and compared with what was written`)
    if (!isBeside) {
      await verifyFile(storage, file, { signal })
      say('it is whole')
    }
    const { content, fault } = openFile(storage, file, { signal })
    // Whoever reads it gets its errors.
    content.on('error', () => {})
    try {
      const used = await use({
        format,
        databases: backup.databases,
        version: backup.version,
        bytes: backup.raw_bytes,
        content
      })
      await readRest(content)
      return used
    } catch (error) {
      throw signal.aborted ? signal.reason : (fault() ?? error)
    } finally {
      content.destroy()
    }
  }
}

/** What follows the end that a program knows: zeros behind a tar. */
const mostRest = 1024 * 1024

/** Its end proves that the file was what it was when it was verified. */
async function readRest(content: Readable): Promise<void> {
  if (content.readableEnded) return
  if (content.destroyed) throw notRead()
  let rest = 0
  for await (const chunk of content as AsyncIterable<Buffer>) {
    rest += chunk.length
    if (rest > mostRest) throw notRead()
  }
}

const notRead = (): Error => new Error('the dump was not read to its end: what was restored is not whole')
