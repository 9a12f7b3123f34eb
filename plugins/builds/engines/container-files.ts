import { Readable } from 'node:stream'
import type { ContainerRuntime } from 'busbar/api/containers'
import { Turns } from 'busbar/sdk'
import { blockBytes, fileHeader, isTarHeader, sizeOf, typeOf } from '../context/tar-header.js'

type Files = Pick<ContainerRuntime, 'getFiles' | 'putFiles' | 'exec'>

/** What is in a build engine is not as it should be; what is in it, a stranger may have written. */
export class BadResult extends Error {}

interface FoundFile {
  readonly size: number
  /** Exactly `size` bytes, or an error. */
  readonly content: AsyncGenerator<Buffer, void, undefined>
  /** Ends the reading. Until then the engine keeps the container locked: what asks for it waits. */
  close(): void
}

/** Files in the container of a build engine. */
export class ContainerFiles {
  constructor(
    private readonly runtime: Files,
    readonly containerId: string,
    private readonly signal: AbortSignal
  ) {}

  /** An ordinary file. A link is none. */
  async open(path: string): Promise<FoundFile> {
    const tar = await this.runtime.getFiles(this.containerId, path, { signal: this.signal })
    const pieces = piecesOf(tar)
    try {
      const header = await nextHeader(pieces)
      return { size: header.size, content: contentOf(pieces, header.size), close: () => tar.destroy() }
    } catch (error) {
      tar.destroy()
      throw error
    }
  }

  async read(path: string, maxBytes: number): Promise<Buffer> {
    const { size, content, close } = await this.open(path)
    try {
      if (size > maxBytes) throw new BadResult(`${path} has ${size} bytes`)
      const pieces: Buffer[] = []
      for await (const piece of content) pieces.push(piece)
      return Buffer.concat(pieces)
    } finally {
      close()
    }
  }

  async sizesOf(paths: readonly string[]): Promise<readonly number[]> {
    if (paths.length === 0) return []
    const lines = await this.run(['stat', '-c', '%s', ...paths])
    const sizes = lines.map(Number)
    if (sizes.length !== paths.length || !sizes.every(size => Number.isSafeInteger(size) && size >= 0))
      throw new BadResult('its layers have no sizes')
    return sizes
  }

  /** Small ones, into a folder that is there. */
  async write(directory: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
    const parts = Object.entries(files).flatMap(([name, content]) => {
      const bytes = Buffer.from(content)
      return [fileHeader(name, bytes.length), bytes, Buffer.alloc(padding(bytes.length))]
    })
    await this.unpack(directory, Readable.from([...parts, Buffer.alloc(2 * blockBytes)]))
  }

  /** One of any size, into a folder that is there, as it is read. */
  async writeLarge(
    directory: string,
    {
      name,
      size,
      content
    }: { readonly name: string; readonly size: number; readonly content: AsyncIterable<Buffer> }
  ): Promise<void> {
    await this.unpack(directory, Readable.from(tarOf(name, size, content)))
  }

  async unpack(directory: string, tar: Readable): Promise<void> {
    await this.runtime.putFiles(this.containerId, directory, tar, { signal: this.signal })
  }

  /** What it prints, where it ends with 0. */
  async run(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
    const lines: string[] = []
    const code = await this.runtime.exec(this.containerId, argv, {
      env,
      signal: this.signal,
      onLine: ({ text }) => {
        if (lines.length < 1000) lines.push(text)
      }
    })
    if (code !== 0) throw new BadResult(`${argv[0]} ended with code ${code}: ${lines.slice(-5).join(' ')}`)
    return lines
  }
}

async function* tarOf(
  name: string,
  size: number,
  content: AsyncIterable<Buffer>
): AsyncGenerator<Buffer, void, undefined> {
  yield fileHeader(name, size)
  let left = size
  for await (const piece of content) {
    left -= piece.length
    if (left < 0) break
    yield piece
  }
  if (left !== 0) throw new BadResult(`${name} has changed while it was read`)
  yield Buffer.alloc(padding(size) + 2 * blockBytes)
}

const padding = (size: number): number => (blockBytes - (size % blockBytes)) % blockBytes

/** Reads a stream in parts of any length. */
interface Pieces {
  readonly iterator: AsyncIterator<Buffer>
  rest: Buffer
}

const piecesOf = (stream: Readable): Pieces => ({
  iterator: stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>,
  rest: Buffer.alloc(0)
})

async function more(pieces: Pieces): Promise<void> {
  const { done, value } = await pieces.iterator.next()
  if (done === true) throw new BadResult('a file came cut off')
  pieces.rest = pieces.rest.length === 0 ? value : Buffer.concat([pieces.rest, value])
}

/** Names longer than a header has room for come in entries of their own, as do other attributes. */
const attributes = /[LKxg]/
const ordinary = /[0\0]/
const maxAttributeBytes = 64 * 1024

async function nextHeader(pieces: Pieces): Promise<{ readonly size: number }> {
  for (let skipped = 0; skipped <= maxAttributeBytes; ) {
    while (pieces.rest.length < blockBytes) await more(pieces)
    const header = pieces.rest.subarray(0, blockBytes)
    pieces.rest = pieces.rest.subarray(blockBytes)
    const size = sizeOf(header)
    if (size === undefined || !isTarHeader(header)) break
    const type = typeOf(header)
    if (ordinary.test(type)) return { size }
    if (!attributes.test(type) || size > maxAttributeBytes) break
    const toSkip = size + padding(size)
    while (pieces.rest.length < toSkip) await more(pieces)
    pieces.rest = pieces.rest.subarray(toSkip)
    skipped += blockBytes + toSkip
  }
  throw new BadResult('what should be a file is none')
}

async function* contentOf(pieces: Pieces, size: number): AsyncGenerator<Buffer, void, undefined> {
  const turns = new Turns()
  for (let left = size; left > 0; ) {
    if (turns.isOver) await turns.pass()
    if (pieces.rest.length === 0) await more(pieces)
    const piece = pieces.rest.subarray(0, left)
    pieces.rest = pieces.rest.subarray(piece.length)
    left -= piece.length
    if (piece.length > 0) yield piece
  }
}
