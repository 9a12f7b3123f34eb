import { type FileHandle, open } from 'node:fs/promises'

const pieceBytes = 256 * 1024
const newline = 10

/** Reads what is appended to a file, line by line, from where it ended when it was begun; a file in its place is read from its start. */
export class FileTail {
  #handle: FileHandle | undefined
  #inode = 0
  #offset = 0
  #rest: Buffer = Buffer.alloc(0)

  private constructor(
    private readonly path: string,
    /** Of one call; what is beyond is read by the next. */
    private readonly mostBytes: number
  ) {}

  /** `last`: so much of what is there already is read as well. */
  static async begin(
    path: string,
    { mostBytes, last = 0 }: { readonly mostBytes: number; readonly last?: number }
  ): Promise<FileTail> {
    const tail = new FileTail(path, mostBytes)
    await tail.#reopen()
    const size = (await tail.#handle?.stat())?.size ?? 0
    tail.#offset = Math.max(0, size - last)
    return tail
  }

  /** The lines that have come. A line that is longer than one call reads is dropped. */
  async lines(): Promise<readonly string[]> {
    const lines: string[] = []
    if (this.#handle === undefined) await this.#reopen()
    await this.#read(lines)
    if (await this.#isReplaced()) {
      await this.#reopen()
      await this.#read(lines)
    }
    return lines
  }

  async close(): Promise<void> {
    await this.#handle?.close().catch(() => {})
    this.#handle = undefined
  }

  async #read(lines: string[]): Promise<void> {
    const handle = this.#handle
    if (handle === undefined) return
    const { size } = await handle.stat()
    // It has been cut down.
    if (size < this.#offset) this.#offset = 0
    let left = this.mostBytes
    const piece = Buffer.allocUnsafe(pieceBytes)
    while (left > 0 && this.#offset < size) {
      const { bytesRead } = await handle.read(piece, 0, Math.min(pieceBytes, left), this.#offset)
      if (bytesRead === 0) return
      this.#offset += bytesRead
      left -= bytesRead
      this.#take(piece.subarray(0, bytesRead), lines)
    }
  }

  #take(chunk: Buffer, lines: string[]): void {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(newline, from)
      if (end < 0) break
      const line = Buffer.concat([this.#rest, chunk.subarray(from, end)])
      this.#rest = Buffer.alloc(0)
      lines.push(line.toString('utf8'))
      from = end + 1
    }
    const rest = chunk.subarray(from)
    // The bytes of `chunk` are used again.
    if (rest.length > 0)
      this.#rest =
        this.#rest.length + rest.length > this.mostBytes ? Buffer.alloc(0) : Buffer.concat([this.#rest, rest])
  }

  async #isReplaced(): Promise<boolean> {
    const now = await open(this.path, 'r').catch(() => undefined)
    if (now === undefined) return false
    try {
      return (await now.stat()).ino !== this.#inode
    } finally {
      await now.close()
    }
  }

  async #reopen(): Promise<void> {
    await this.close()
    this.#offset = 0
    this.#rest = Buffer.alloc(0)
    this.#handle = await open(this.path, 'r').catch(() => undefined)
    this.#inode = this.#handle === undefined ? 0 : (await this.#handle.stat()).ino
  }
}

/** The last lines of a file, at most so many, of its last MiB. Empty where there is none. */
export async function lastLines(path: string, most: number): Promise<readonly string[]> {
  const tail = await FileTail.begin(path, { mostBytes: 1024 * 1024, last: 1024 * 1024 })
  try {
    return (await tail.lines()).slice(-most)
  } finally {
    await tail.close()
  }
}
