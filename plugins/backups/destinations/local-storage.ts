import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
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
        await pipeline(content, output, { signal })
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
      throw failure(error, this.folder)
    }
  }
}

/** What the disk has refused. What it is not about (the dump has failed) passes. */
function failure(error: unknown, folder: string): unknown {
  switch (codeOf(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new StorageError(
        `the disk of ${folder} is full: make room, keep fewer backups, or use another destination`,
        { cause: error }
      )
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return new StorageError(
        `${folder} cannot be written to: give it to the user that the platform runs as, or set DATABASE_BACKUP_DIR`,
        { cause: error }
      )
    case 'ENOENT':
      return new StorageError(`there is no such file in ${folder}`, { cause: error })
    case 'EIO':
      return new StorageError(`the disk of ${folder} has failed`, { cause: error })
    case 'ENOTDIR':
    case 'EEXIST':
    case 'EISDIR':
    case 'ELOOP':
      return new StorageError(
        `${folder} is not a folder, or something in it is in the way (${codeOf(error)}): take that away, or set DATABASE_BACKUP_DIR`,
        { cause: error }
      )
    case 'ENAMETOOLONG':
      return new StorageError(`a name in ${folder} would be too long: use a shorter prefix`, { cause: error })
    case 'EMFILE':
    case 'ENFILE':
    case 'EBUSY':
    case 'ESTALE':
      return new StorageError(`${folder} cannot be used now (${codeOf(error)}): try again`, { cause: error })
    default:
      return error
  }
}

const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown } | null)?.code

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await folder.sync().finally(async () => {
    await folder.close()
  })
}
