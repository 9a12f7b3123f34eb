import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { ShortDisk, whileRoom } from 'busbar/sdk/disk'
import { type BackupStorage, StorageError } from '../api.js'
import { isKeyPart } from '../runs/file-name.js'

interface Options {
  readonly signal: AbortSignal
}

/** Of a file that is being written: nobody takes half of one for a backup. */
const partialEnding = '.part'
const readBytes = 512 * 1024
const privateFile = 0o600
const privateFolder = 0o700

/** A folder of this machine. */
export class LocalStorage implements BackupStorage {
  constructor(private readonly folder: string) {}

  async put(key: string, content: AsyncIterable<Buffer>, { signal }: Options): Promise<void> {
    const file = this.#fileOf(key)
    const partial = `${file}${partialEnding}`
    await this.#saying(signal, async () => {
      await mkdir(dirname(file), { recursive: true, mode: privateFolder })
      try {
        const output = createWriteStream(partial, {
          mode: privateFile,
          flush: true,
          highWaterMark: readBytes
        })
        await pipeline(
          whileRoom(content, dirname(file), () => output.bytesWritten),
          output,
          { signal }
        )
        await rename(partial, file)
        await syncFolder(dirname(file))
      } catch (error) {
        await rm(partial, { force: true })
        throw error
      }
    })
  }

  async get(
    key: string,
    { signal, from = 0 }: Options & { readonly from?: number }
  ): Promise<AsyncIterable<Buffer>> {
    const file = this.#fileOf(key)
    return await this.#saying(signal, async () => {
      await stat(file)
      return createReadStream(file, { start: from, highWaterMark: readBytes, signal })
    })
  }

  async size(key: string, { signal }: Options): Promise<number | null> {
    const file = this.#fileOf(key)
    return await this.#saying(
      signal,
      async () =>
        await stat(file).then(
          ({ size }) => size,
          (error: unknown) => {
            if (codeOf(error) === 'ENOENT') return null
            throw error
          }
        )
    )
  }

  async remove(key: string, { signal }: Options): Promise<void> {
    const file = this.#fileOf(key)
    await this.#saying(signal, async () => {
      await rm(`${file}${partialEnding}`, { force: true })
      await rm(file, { force: true })
    })
  }

  async test({ signal }: Options): Promise<void> {
    const file = join(this.folder, '.trial')
    await this.#saying(signal, async () => {
      await mkdir(this.folder, { recursive: true, mode: privateFolder })
      await writeFile(file, 'trial', { mode: privateFile })
      await rm(file, { force: true })
    })
  }

  async free(): Promise<number | null> {
    for (let folder = this.folder; ; folder = dirname(folder)) {
      const found = await statfs(folder).catch(() => undefined)
      if (found !== undefined) return found.bavail * found.bsize
      if (folder === dirname(folder)) return null
    }
  }

  #fileOf(key: string): string {
    if (key === '' || !isKeyPart(key)) throw new StorageError(`${key.slice(0, 100)} is no name of a file`)
    return join(this.folder, key)
  }

  async #saying<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    try {
      return await work()
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw failure(error)
    }
  }
}

/**
 * What the disk has refused, for members of projects: where the folder is they need not know, and the log has it. What it is not about
 * (the dump has failed) passes.
 */
function failure(error: unknown): unknown {
  if (error instanceof ShortDisk) return new StorageError(short, { cause: error })
  const code = codeOf(error)
  const sentence = typeof code === 'string' ? sentences[code] : undefined
  return sentence === undefined ? error : new StorageError(sentence, { cause: error })
}

const notWritable =
  'the folder of backups of this server cannot be written to: give it to the user that the platform runs as, or set DATABASE_BACKUP_DIR'
const full =
  'the disk of the backups of this server is full: make room, keep fewer backups, or use another destination'
const short =
  'the disk of the backups of this server is full, but for what is left to the platform: make room, keep fewer backups, or use another destination'
const notAFolder =
  'the folder of backups of this server is none, or something in it is in the way: take that away, or set DATABASE_BACKUP_DIR'
const notNow = 'the folder of backups of this server cannot be used now: try again'

const sentences: Readonly<Record<string, string>> = {
  ENOSPC: full,
  EDQUOT: full,
  EROFS: notWritable,
  EACCES: notWritable,
  EPERM: notWritable,
  ENOENT: 'there is no such file among the backups of this server',
  EIO: 'the disk of the backups of this server has failed',
  ENOTDIR: notAFolder,
  EEXIST: notAFolder,
  EISDIR: notAFolder,
  ELOOP: notAFolder,
  ENAMETOOLONG: 'a name among the backups of this server would be too long: use a shorter prefix',
  EMFILE: notNow,
  ENFILE: notNow,
  EBUSY: notNow,
  ESTALE: notNow
}

const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown } | null)?.code

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().finally(async () => {
    await folder.close()
  })
}
