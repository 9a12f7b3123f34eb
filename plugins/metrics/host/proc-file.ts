import { closeSync, openSync, readSync } from 'node:fs'

/** Of `/proc/meminfo`, which is the longer one, all fits; of `/proc/stat` the first line is read. */
const mostBytes = 4096

/**
 * A file that says something else each time, as those of `/proc` do. It is kept open: to open it takes longer than to read it.
 * It is read at once, from memory: to wait for a thread that reads it takes several times as long.
 */
export class ProcFile {
  readonly #buffer = Buffer.allocUnsafeSlow(mostBytes)
  #descriptor: number | undefined

  constructor(private readonly path: string) {}

  /** Its beginning; nothing where it cannot be read. */
  read(): string {
    try {
      this.#descriptor ??= openSync(this.path, 'r')
      return this.#buffer.toString('latin1', 0, readSync(this.#descriptor, this.#buffer, 0, mostBytes, 0))
    } catch {
      this.close()
      return ''
    }
  }

  /** It is opened again by who reads on. */
  close(): void {
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    if (descriptor !== undefined) closeSync(descriptor)
  }
}
