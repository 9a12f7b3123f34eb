import { type FileHandle, open } from 'node:fs/promises'

/** Of `/proc/meminfo`, which is the longer one, all fits; of `/proc/stat` the first line is read. */
const mostBytes = 4096

/** A file that says something else each time, as those of `/proc` do. It is kept open: to open it takes longer than to read it. */
export class ProcFile {
  #opened: Promise<FileHandle> | undefined

  constructor(private readonly path: string) {}

  /** Its beginning; nothing where it cannot be read. */
  async read(): Promise<string> {
    try {
      this.#opened ??= open(this.path)
      const { buffer, bytesRead } = await (await this.#opened).read(
        Buffer.allocUnsafe(mostBytes),
        0,
        mostBytes,
        0
      )
      return buffer.toString('latin1', 0, bytesRead)
    } catch {
      await this.close()
      return ''
    }
  }

  /** It is opened again by who reads on. */
  async close(): Promise<void> {
    const opened = this.#opened
    this.#opened = undefined
    const file = await opened?.catch(() => undefined)
    await file?.close().catch(() => {})
  }
}
